// prototxt: a net or a solver as text; it is read, upgraded, written and read again.
#include "hearth/caffe/proto/text_reader.h"
#include "hearth/caffe/proto/text_writer.h"
#include "hearth/caffe/upgrade/net_file.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::Text(data, size);
  fuzz::Refusable([&] { caffe::ParseSolver(text, "fuzz.prototxt"); });
  fuzz::Refusable([&] {
    const caffe::NetParameter net = caffe::ParseNet(text, "fuzz.prototxt");
    const std::string written = caffe::WriteText(net);
    caffe::NetParameter again;
    try {
      caffe::ParseText(written, "written.prototxt", &again);
    } catch (const Error&) {
      __builtin_trap();  // written text must be readable
    }
    if (caffe::WriteText(again) != written) __builtin_trap();
  });
  return 0;
}
