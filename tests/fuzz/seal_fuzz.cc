// The text of a snapshot's seal: a position must be the same after it is written and read again.
#include <cstdint>
#include <string>

#include "hearth/caffe/snapshot/snapshot_seal.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Refusable([&] {
    const caffe::TrainingPosition read =
        caffe::PositionFromText(std::string(fuzz::Text(data, size)));
    if (read.iteration < 0 || read.ranks < 1 || read.batch_size < 0) __builtin_trap();
    const std::string written = caffe::PositionToText(read);
    if (caffe::PositionToText(caffe::PositionFromText(written)) != written) __builtin_trap();
  });
  return 0;
}
