// hearth.native._caffe: what the engine makes of prototxt before it builds nets.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "caffe_module.h"
#include "hearth/caffe/net/net_filter.h"
#include "hearth/caffe/net/net_splits.h"
#include "hearth/caffe/proto/text_writer.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

std::string UpgradeNet(const std::string& prototxt) {
  return caffe::WriteText(caffe::ParseNet(prototxt, "prototxt"));
}

std::string FilterNet(const std::string& prototxt) {
  return caffe::WriteText(caffe::FilterNet(caffe::ParseNet(prototxt, "prototxt")));
}

std::string InsertSplits(const std::string& prototxt) {
  return caffe::WriteText(caffe::InsertSplits(caffe::ParseNet(prototxt, "prototxt")));
}

std::string ReadSolver(const std::string& uri) { return caffe::WriteText(caffe::ReadSolver(uri)); }

}  // namespace

void RegisterNetText(nb::module_& m) {
  m.def("upgrade_net", UpgradeNet, "prototxt"_a,
        "The prototxt in today's format: V0 and V1 layers, `input` fields and old data fields "
        "converted.");
  m.def("filter_net", FilterNet, "prototxt"_a,
        "The prototxt without the layers that its state's include and exclude rules leave out.");
  m.def("insert_splits", InsertSplits, "prototxt"_a,
        "The prototxt with Split layers where a blob has several consumers.");
  m.def("read_solver", ReadSolver, "uri"_a,
        "A solver's file as prototxt in today's format. Raises ValueError as 'file:line:column: "
        "...'.");
}

}  // namespace hearth::bindings
