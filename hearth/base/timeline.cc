#include "hearth/base/timeline.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "hearth/base/error.h"
#include "hearth/base/fd.h"
#include "hearth/base/host_name.h"
#include "hearth/base/log.h"

namespace hearth::timeline {
namespace {

// Size limit of a timeline file. Viewers cannot open larger ones, and other programs need the disk,
// too.
constexpr size_t kMaxBytes = size_t{256} << 20;

enum class State { kUnknown, kOff, kOn };
std::atomic<State> state{State::kUnknown};

// Returns the text as a JSON string; invalid UTF-8 is replaced.
std::string Quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Chrome's format counts in microseconds.
int64_t Microseconds(std::chrono::nanoseconds time) { return time.count() / 1000; }

// Formats the time in microseconds, with nanoseconds as decimals.
std::string Time(std::chrono::nanoseconds time) {
  return fmt::format("{}.{:03}", time.count() / 1000, time.count() % 1000);
}

// Identifies the machine in the file, because all ranks of a machine share a clock.
std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

class File {
 public:
  explicit File(const std::string& folder) {
    Require(folder.find("://") == std::string::npos, ErrorCode::kInvalidArgument,
            "the timeline's folder {} is a URI: give a path on the host's own disk", folder);
    const std::filesystem::path path =
        std::filesystem::path(folder) / fmt::format("{}-{}.trace.json", HostName(), ::getpid());
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);  // open() below reports errors
    fd_ = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
    if (!fd_.valid()) ThrowErrno(errno, fmt::format("cannot open the timeline {}", path.string()));
    path_ = path.string();
    Write("[\n");
    // Records the time of the system's clock and of this file's clock, so that the timelines of
    // several hosts can be aligned when they are merged.
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    const auto now = Clock::now().time_since_epoch();
    Write(fmt::format(R"({{"ph":"M","pid":{},"tid":0,"name":"hearth_clock","args":{{"host":{},)"
                      R"("boot":{},"monotonic_us":{},"wall_us":{}}}}},)"
                      "\n",
                      ::getpid(), Quoted(HostName()), Quoted(BootId()), Microseconds(now),
                      Microseconds(wall)));
  }

  // Returns false once the file has reached its size limit or a write has failed. Writes all lines
  // by one write() under O_APPEND, so that they are not torn even if the process is killed. Stops
  // after a short write, because a torn line would make the following lines invalid.
  bool Write(std::string_view lines) {
    const std::lock_guard lock(mutex_);
    if (full_) return false;
    std::string problem;
    if (written_ + lines.size() > kMaxBytes) {
      problem = fmt::format("it has reached its limit of {} MB", kMaxBytes >> 20);
    } else if (::write(fd_.get(), lines.data(), lines.size()) !=
               static_cast<ssize_t>(lines.size())) {
      problem = "it cannot be written (is the disk full?)";
    }
    written_ += lines.size();
    full_ = !problem.empty();
    if (full_) log::Warning("the timeline {} ends here: {}", path_, problem);
    return !full_;
  }

 private:
  std::mutex mutex_;
  std::string path_;
  Fd fd_;
  size_t written_ = 0;
  bool full_ = false;
};

std::mutex opening;
std::atomic<File*> the_file{nullptr};  // never destroyed: threads may write during process exit
std::atomic<bool> named{false};

void Open(const std::string& folder) {
  const std::lock_guard lock(opening);
  if (the_file.load() != nullptr) return;
  the_file = new File(folder);
  // Turns recording off in a forked child, which would otherwise record its events as those of this
  // process.
  ::pthread_atfork(nullptr, nullptr, [] { state = State::kOff; });
  // Set last, because a thread that sees kOn uses the_file without the mutex.
  state = State::kOn;
}

void OpenByEnvironment() noexcept {
  const char* folder = std::getenv("HEARTH_TIMELINE");
  if (folder == nullptr || *folder == '\0') {
    State unknown = State::kUnknown;
    // Not a plain store, because another thread may have set kOn by WriteTo() in the meantime.
    state.compare_exchange_strong(unknown, State::kOff);
    return;
  }
  try {
    Open(folder);
  } catch (const std::exception& error) {  // training goes on without a timeline
    state = State::kOff;
    log::Warning("no timeline is written: {}", error.what());
  }
}

// Logs that an event was lost, which must not end the measured program. Formats no text, because
// memory may be exhausted.
void WarnOnce() noexcept {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  log::Write(log::Level::kWarning, {__FILE__, __LINE__},
             "the timeline lacks events, as memory is exhausted");
}

void WriteLine(std::string_view line) noexcept {
  if (!the_file.load()->Write(line)) state = State::kOff;
}

// Returns the thread's number. In a thread's first call, also writes the thread's name to the file.
long ThisThread() {
  thread_local const long number = [] {
    const long id = ::syscall(SYS_gettid);
    char name[32] = {};
    ::pthread_getname_np(::pthread_self(), name, sizeof(name));
    WriteLine(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name",)"
                          R"("args":{{"name":{}}}}},)"
                          "\n",
                          ::getpid(), id, Quoted(name)));
    return id;
  }();
  return number;
}

}  // namespace

bool On() noexcept {
  // Every span calls On(). If there is no timeline, this load is all that a span costs. The load is
  // an acquire, so that a thread that sees kOn also sees the file.
  const State now = state.load(std::memory_order_acquire);
  if (now != State::kUnknown) return now == State::kOn;
  OpenByEnvironment();
  return state.load() == State::kOn;
}

void WriteTo(const std::string& folder) { Open(folder); }

void NameProcess(std::string_view name) noexcept {
  if (!On() || named.exchange(true)) return;
  try {
    WriteLine(fmt::format(R"({{"ph":"M","pid":{},"tid":0,"name":"process_name",)"
                          R"("args":{{"name":{}}}}},)"
                          "\n",
                          ::getpid(), Quoted(name)));
  } catch (const std::exception&) {
    WarnOnce();
  }
}

Details& Details::Add(std::string_view name, int64_t value) {
  json_ += fmt::format(R"({}"{}":{})", json_.empty() ? "" : ",", name, value);
  return *this;
}

Details& Details::Add(std::string_view name, std::string_view value) {
  json_ += fmt::format(R"({}"{}":{})", json_.empty() ? "" : ",", name, Quoted(value));
  return *this;
}

void Add(const Event& event, const Details& details) noexcept {
  if (!On()) return;
  try {
    WriteLine(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"cat":"{}","name":{},)"
                          R"("args":{{{}}}}},)"
                          "\n",
                          ::getpid(), ThisThread(), Time(event.begin.time_since_epoch()),
                          Time(event.end - event.begin), event.category, Quoted(event.name),
                          details.json()));
  } catch (const std::exception&) {
    WarnOnce();
  }
}

}  // namespace hearth::timeline
