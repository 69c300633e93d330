// .solverstate: it is read, written and read again.
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/proto/wire_reader.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

namespace {

std::string Written(const caffe::SolverState& state) {
  std::string bytes;
  caffe::WriteWire(state, [&](std::string_view part) { bytes += part; });
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Refusable([&] {
    caffe::SolverState state;
    caffe::ParseWire(fuzz::Text(data, size), "fuzz.solverstate", &state);
    const std::string bytes = Written(state);
    caffe::SolverState again;
    try {
      caffe::ParseWire(bytes, "written.solverstate", &again);
    } catch (const Error&) {
      __builtin_trap();  // written bytes must be readable
    }
    if (Written(again) != bytes) __builtin_trap();
  });
  return 0;
}
