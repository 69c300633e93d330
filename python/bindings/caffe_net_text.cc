// hearth.native._caffe: prototxt transformations of the engine.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "caffe_module.h"
#include "gil.h"
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
        "Upgrades a prototxt to the current format: V0 and V1 layers, `input` fields and old data "
        "fields converted.");
  m.def("filter_net", FilterNet, "prototxt"_a,
        "Removes the layers that the include and exclude rules of its state filter out.");
  m.def("insert_splits", InsertSplits, "prototxt"_a,
        "Inserts Split layers for blobs with several consumers.");
  // Releases the GIL because the URI may refer to another host.
  m.def("read_solver", ReadSolver, "uri"_a, ReleaseGil(),
        "Reads a solver's file as prototxt in the current format. Raises ValueError as "
        "'file:line:column: "
        "...'.");
}

}  // namespace hearth::bindings
