// HDF5 files: a model, a solver's state and a data layer's input. The number of values must match
// the shape, and memory and time must stay below the driver's limits. The library itself crashes on
// some files (docs/decisions/063-...), so a child process first reads each file.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "hearth/caffe/data/hdf5_file.h"
#include "hearth/caffe/snapshot/snapshot_hdf5.h"
#include "hearth/caffe/tensor/shape_count.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

// The HDF5 library handles failed allocations, and it leaks memory on errors.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "max_allocation_size_mb=1024:hard_rss_limit_mb=2048:handle_segv=1:detect_leaks=0:"
         "allocator_may_return_null=1";
}

namespace {

struct Crashes {
  int count = 0;
  ~Crashes() { std::printf("the HDF5 library crashed on %d inputs\n", count); }
};

// Reads every object by Hdf5File's calls, and each only once, because links may form cycles.
void Walk(const caffe::Hdf5File& file, const std::string& group, std::set<std::string>* seen) {
  for (const std::string& name : file.Children(group)) {
    const std::string path = group + name;
    fuzz::Refusable([&] {
      if (!seen->insert(file.Identity(path)).second) return;
      if (file.IsGroup(path)) return Walk(file, path + "/", seen);
      fuzz::Refusable([&] { file.ReadFloats(path); });
      fuzz::Refusable([&] { file.ReadInt(path); });
      fuzz::Refusable([&] { file.ReadText(path); });
    });
  }
}

// Whether a child process that only calls the library ends normally.
bool LibraryReads(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) ::signal(number, SIG_DFL);
    fuzz::Refusable([&] {
      std::set<std::string> seen;
      Walk(caffe::Hdf5File::Open(path), "/", &seen);
    });
    ::_exit(0);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) __builtin_trap();
  return status == 0;
}

void ReadAll(const std::string& path) {
  const caffe::Hdf5File file = caffe::Hdf5File::Open(path);
  for (const std::string& name : file.Children("/")) {
    const std::string object = "/" + name;
    fuzz::Refusable([&] {
      const std::vector<float> values = file.ReadFloats(object);
      const auto count = caffe::CountOf(file.ShapeOf(object));
      if (!count || static_cast<size_t>(*count) != values.size()) __builtin_trap();
    });
    fuzz::Refusable([&] { file.ReadText(object); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Crashes crashes;
  const std::string path = "fuzz_hdf5." + std::to_string(getpid());
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  if (LibraryReads(path)) {
    fuzz::Refusable([&] { ReadAll(path); });
    fuzz::Refusable([&] { caffe::ReadModelHdf5(path); });
    fuzz::Refusable([&] { caffe::ReadStateHdf5(path); });
  } else {
    ++crashes.count;
  }
  unlink(path.c_str());
  return 0;
}
