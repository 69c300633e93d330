// hearth.native._caffe.Net. Its arrays are views of the engine's memory, never copies.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caffe_device.h"
#include "caffe_module.h"
#include "gil.h"
#include "hearth/base/error.h"
#include "hearth/caffe/net/array_input.h"
#include "hearth/caffe/net/net.h"
#include "hearth/caffe/snapshot/snapshot.h"
#include "hearth/caffe/snapshot/snapshot_hdf5.h"
#include "hearth/caffe/snapshot/trained_weights.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using caffe::Net;
using Array = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using OnLayer = std::function<void(int index)>;

// Copies the items, because the layer uses them in later forward passes, when the caller may have
// changed the array.
caffe::Tensor CopyOf(const Array& array) {
  std::vector<int64_t> shape;
  for (size_t i = 0; i < array.ndim(); ++i) shape.push_back(static_cast<int64_t>(array.shape(i)));
  caffe::Tensor copy = caffe::Tensor::Empty(shape);
  std::memcpy(copy.data_ptr(), array.data(), array.nbytes());
  return copy;
}

caffe::Phase PhaseOf(const std::string& name) {
  Require(name == "TRAIN" || name == "TEST", ErrorCode::kInvalidArgument,
          "phase '{}' is not TRAIN or TEST", name);
  return name == "TRAIN" ? caffe::TRAIN : caffe::TEST;
}

std::unique_ptr<Net> BuildNet(caffe::NetParameter param, const std::string& phase, int level,
                              const std::vector<std::string>& stages, uint64_t seed) {
  if (level != 0) param.mutable_state()->set_level(level);
  for (const std::string& stage : stages) param.mutable_state()->add_stage(stage);
  caffe::NetContext context;
  context.phase = PhaseOf(phase);
  context.random = std::make_shared<caffe::Random>(seed);
  context.seed = seed;
  context.device = ModeDevice();
  return std::make_unique<Net>(param, context);
}

std::unique_ptr<Net> NetOfText(const std::string& prototxt, const std::string& phase, int level,
                               const std::vector<std::string>& stages, uint64_t seed) {
  return BuildNet(caffe::ParseNet(prototxt, "prototxt"), phase, level, stages, seed);
}

std::unique_ptr<Net> NetOfFile(const std::string& uri, const std::string& phase, int level,
                               const std::vector<std::string>& stages, uint64_t seed) {
  return BuildNet(caffe::ReadNet(uri), phase, level, stages, seed);
}

// Makes a net whose blobs share memory, as in `hearth test` and feature extraction.
std::unique_ptr<Net> NetForInference(const std::string& prototxt, const std::string& precision) {
  caffe::NetContext context;
  context.phase = caffe::TEST;
  context.random = std::make_shared<caffe::Random>(0);
  context.device = ModeDevice();
  context.share_data = true;
  context.precision = caffe::ParsePrecision(precision);
  return std::make_unique<Net>(caffe::ParseNet(prototxt, "prototxt"), context);
}

void SetInputArrays(Net& net, const Array& data, const Array& labels) {
  for (const caffe::NetLayer& layer : net.layers()) {
    if (auto* fed = dynamic_cast<caffe::ArrayInput*>(layer.layer.get())) {
      return fed->SetArrays(CopyOf(data), CopyOf(labels));
    }
  }
  Throw(ErrorCode::kInvalidArgument, "net '{}' has no MemoryData layer for the arrays", net.name());
}

void AddLayerCallback(Net& net, const std::string& event, OnLayer call) {
  static constexpr std::array<std::string_view, 4> kEvents = {"before_forward", "after_forward",
                                                              "before_backward", "after_backward"};
  const auto* const wanted = std::find(kEvents.begin(), kEvents.end(), event);
  Require(wanted != kEvents.end(), ErrorCode::kInvalidArgument, "unknown layer event '{}': use {}",
          event, fmt::join(kEvents, ", "));
  const auto when = static_cast<Net::LayerEvent>(wanted - kEvents.begin());
  net.AddLayerCallback([when, call = std::move(call)](Net::LayerEvent now, int index) {
    if (now == when) call(index);
  });
}

void BindRunning(nb::class_<Net>& net) {
  net.def(
         "forward",
         [](Net& self, int first, int last) {
           return self.Forward(first, last < 0 ? self.last_layer() : last);
         },
         "first"_a = 0, "last"_a = -1, ReleaseGil(),
         "Runs the layers `first` to `last` (-1: the last one); returns their loss.")
      .def(
          "backward",
          [](Net& self, int first, int last) {
            self.Backward(first < 0 ? self.last_layer() : first, last);
          },
          "first"_a = -1, "last"_a = 0, ReleaseGil(),
          "Runs backward from layer `first` (-1: the last one) down to `last`; adds to the "
          "parameters' diffs.")
      .def("reshape", &Net::Reshape, ReleaseGil(), "Propagates new input shapes.")
      .def("clear_param_diffs",
           [](Net& self) {
             self.ClearParamDiffs();
             self.params().device_diff();  // makes the change visible in Python's arrays
           })
      .def("add_layer_callback", AddLayerCallback, "event"_a, "call"_a,
           "Calls call(layer_index) at an event of every layer: before_forward, after_forward, "
           "before_backward or after_backward.")
      .def("set_input_arrays", SetInputArrays, "data"_a, "labels"_a,
           "Sets the MemoryData layer's items (n, channels, height, width) and n labels.");
}

void BindWeights(nb::class_<Net>& net) {
  net.def(
         "copy_from",
         [](Net& self, const std::string& uri) { caffe::LoadTrainedWeights(uri, &self); }, "uri"_a,
         ReleaseGil(), "Loads weights from a .caffemodel, by layer name.")
      .def("share_with", &Net::ShareTrainedLayersWith, "other"_a,
           "Shares the other net's weights, without a copy, for layers of the same name.")
      .def(
          "save",
          [](const Net& self, const std::string& uri, bool diffs) {
            caffe::WriteModel(self.ToProto(diffs), uri);
          },
          "uri"_a, "diffs"_a = false, ReleaseGil(), "Writes a .caffemodel.")
      .def(
          "load_hdf5",
          [](Net& self, const std::string& uri) {
            self.CopyTrainedLayersFrom(caffe::ReadModelHdf5(uri));
          },
          "uri"_a, ReleaseGil(), "Loads weights from an HDF5 file, by layer name.")
      .def(
          "save_hdf5",
          [](const Net& self, const std::string& uri, bool diffs) {
            caffe::WriteModelHdf5(self.ToProto(diffs), uri);
          },
          "uri"_a, "diffs"_a = false, ReleaseGil(), "Writes the weights as HDF5.");
}

}  // namespace

void RegisterNet(nb::module_& m) {
  nb::class_<Net> net(m, "Net", "A network. Not thread-safe.");
  net.def(nb::new_(&NetOfText), "prototxt"_a, "phase"_a, "level"_a = 0,
          "stages"_a = std::vector<std::string>(), "seed"_a = 0,
          "Builds the net of a prototxt's text. `phase`: TRAIN or TEST. Raises ValueError that "
          "names the line or the layer.")
      .def_static("read", NetOfFile, "uri"_a, "phase"_a, "level"_a = 0,
                  "stages"_a = std::vector<std::string>(), "seed"_a = 0,
                  "Builds the net of a prototxt file.")
      .def_static(
          "for_inference", NetForInference, "prototxt"_a, "precision"_a = "float32",
          "Builds the TEST net of a prototxt's text as `hearth test` does: blobs other than "
          "outputs are valid inside of a forward only. With `precision` int8, weights are "
          "rounded in the first forward after they were loaded; arrays of `params` must not "
          "be changed after it.");
  BindNetStructure(&net);
  BindRunning(net);
  BindWeights(net);
  m.def(
      "layer_types", [] { return caffe::LayerRegistry::Default().types(); },
      "The names of all layer types, sorted.");
}

}  // namespace hearth::bindings
