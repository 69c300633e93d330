// Mean files: the number of values must match the dimensions, or the file is refused.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "hearth/caffe/data/mean_file.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = memfd_create("mean", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != static_cast<ssize_t>(size)) __builtin_trap();
  fuzz::Refusable([&] {
    const caffe::MeanImage mean = caffe::ReadMeanFile("/proc/self/fd/" + std::to_string(fd));
    const bool negative = mean.channels < 0 || mean.height < 0 || mean.width < 0;
    const auto count = static_cast<__int128>(mean.channels) * mean.height * mean.width;
    if (negative || count != static_cast<__int128>(mean.values.size())) __builtin_trap();
  });
  close(fd);
  return 0;
}
