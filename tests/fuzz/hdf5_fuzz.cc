// HDF5 files: a model, a solver's state and a data layer's input. The number of values matches the
// shape; memory and time stay below the driver's limits. Crashes of the library itself end a child
// process (hdf5_trial.h).
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "hearth/caffe/data/hdf5_file.h"
#include "hearth/caffe/net/shape_count.h"
#include "hearth/caffe/snapshot/snapshot_hdf5.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // an entry function, nothing else

// The HDF5 library fails where an allocation fails, and leaks on errors.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=1024:hard_rss_limit_mb=2048:handle_segv=1:detect_leaks=0:"
         "allocator_may_return_null=1";
}

namespace {

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
  static int count = 0;  // a file that is known is not tried again
  const std::string path = "fuzz_hdf5." + std::to_string(getpid()) + "." + std::to_string(++count);
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  fuzz::Refusable([&] { ReadAll(path); });
  fuzz::Refusable([&] { caffe::ReadModelHdf5(path); });
  fuzz::Refusable([&] { caffe::ReadStateHdf5(path); });
  unlink(path.c_str());
  return 0;
}
