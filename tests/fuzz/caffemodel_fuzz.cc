// .caffemodel: a net with weights in protobuf's binary format, of any Caffe version.
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/proto/wire_reader.h"
#include "hearth/caffe/upgrade/net_file.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Refusable([&] {
    caffe::NetParameter net;
    caffe::ParseWire(fuzz::Text(data, size), "fuzz.caffemodel", &net);
    caffe::UpgradeNet(&net, "fuzz.caffemodel");
  });
  return 0;
}
