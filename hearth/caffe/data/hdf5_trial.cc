#include "hearth/caffe/data/hdf5_trial.h"

#include <sys/stat.h>

#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <tuple>

#include "hearth/base/error.h"
#include "hearth/base/trial.h"
#include "hearth/caffe/data/hdf5_library.h"

namespace hearth::caffe {
namespace {

// A damaged file may also put the library into an endless loop.
constexpr unsigned kLeastSeconds = 60;
constexpr int64_t kSlowBytesPerSecond = 10'000'000;

// Reads a group and its members, each once: links may form cycles.
class Walk {
 public:
  explicit Walk(const Hdf5File& file) : file_(file) {}

  void Group(const std::string& path, int depth) {
    if (depth > kDeepest || !seen_.insert(file_.Identity(path)).second) return;
    for (const std::string& name : file_.Children(path)) {
      const std::string child = path == "/" ? path + name : path + "/" + name;
      Try([&] {
        if (file_.IsGroup(child)) return Group(child, depth + 1);
        Dataset(child);
      });
    }
  }

 private:
  static constexpr int kDeepest = 300;

  // After a rejected object, read the rest, which may be used without it.
  static void Try(const std::function<void()>& read) {
    try {
      read();
    } catch (const std::exception&) {  // out of memory, too
    }
  }

  void Dataset(const std::string& path) {
    if (!seen_.insert(file_.Identity(path)).second) return;
    Try([&] { file_.ShapeOf(path); });
    Try([&] { file_.ReadFloats(path); });
    Try([&] { file_.ReadInt(path); });
    Try([&] { file_.ReadText(path); });
  }

  const Hdf5File& file_;
  std::set<std::string> seen_;
};

// The state of a file that survived. A writer that leaves all of these unchanged is not noticed;
// the times are nanoseconds.
using State = std::tuple<std::string, dev_t, ino_t, off_t, int64_t, int64_t>;

State StateOf(const std::string& path) {
  struct stat of {};
  if (::stat(path.c_str(), &of) != 0) return {};
  return {path,
          of.st_dev,
          of.st_ino,
          of.st_size,
          of.st_mtim.tv_sec * 1'000'000'000 + of.st_mtim.tv_nsec,
          of.st_ctim.tv_sec * 1'000'000'000 + of.st_ctim.tv_nsec};
}

class Survivors {
 public:
  bool Has(const State& state) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return states_.count(state) > 0;
  }
  void Add(const State& state) {
    const std::lock_guard<std::mutex> lock(mutex_);
    states_.insert(state);
  }

 private:
  std::mutex mutex_;
  std::set<State> states_;
};

Survivors& KnownSurvivors() {
  static Survivors survivors;
  return survivors;
}

}  // namespace

void TryHdf5(const std::string& name, const std::string& path, int64_t bytes,
             const std::function<Hdf5File()>& open) {
  const State state = path.empty() ? State{} : StateOf(path);
  if (!path.empty() && KnownSurvivors().Has(state)) return;
  const auto seconds = kLeastSeconds + static_cast<unsigned>(bytes / kSlowBytesPerSecond);
  const TrialEnd end = RunTrial(Hdf5Mutex(), seconds, [&] {
    const Hdf5File file = open();
    Walk(file).Group("/", 0);
  });
  Require(end.survived || !end.killed, ErrorCode::kResourceExhausted,
          "{} cannot be read: the process that test-read it was killed ({}), as the system"
          " does when memory runs out; give the process more memory",
          name, end.how);
  Require(end.survived, ErrorCode::kDataLoss,
          "{} is damaged: the HDF5 library was killed by {} in a test read of the file;"
          " use another copy",
          name, end.how);
  if (!path.empty()) KnownSurvivors().Add(state);
}

}  // namespace hearth::caffe
