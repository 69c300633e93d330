// hearth.native._caffe.Net and Blob: arrays are views of the engine's memory, never copies.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "caffe_module.h"
#include "hearth/base/error.h"
#include "hearth/caffe/layers/array_fed.h"
#include "hearth/caffe/net.h"
#include "hearth/caffe/net_file.h"
#include "hearth/caffe/net_filter.h"
#include "hearth/caffe/net_splits.h"
#include "hearth/caffe/proto/text_writer.h"
#include "hearth/caffe/snapshot.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using caffe::Blob;
using caffe::Net;
using View = nb::ndarray<nb::numpy, float>;
using Array = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

// The array keeps the memory alive, also when the blob has moved on to a larger one.
View ViewOf(const at::Tensor& tensor) {
  auto kept = std::make_unique<at::Tensor>(tensor);
  float* data = kept->data_ptr<float>();
  const std::vector<size_t> shape(tensor.sizes().begin(), tensor.sizes().end());
  nb::capsule owner(kept.release(), [](void* p) noexcept { delete static_cast<at::Tensor*>(p); });
  return View(data, shape.size(), shape.data(), owner);
}

at::Tensor CopyOf(const Array& array) {
  std::vector<int64_t> shape;
  for (size_t i = 0; i < array.ndim(); ++i) shape.push_back(static_cast<int64_t>(array.shape(i)));
  at::Tensor copy = at::empty(shape, at::kFloat);
  std::memcpy(copy.data_ptr<float>(), array.data(), array.nbytes());
  return copy;
}

caffe::Phase PhaseOf(const std::string& name) {
  Require(name == "TRAIN" || name == "TEST", ErrorCode::kInvalidArgument,
          "phase '{}' is not TRAIN or TEST", name);
  return name == "TRAIN" ? caffe::TRAIN : caffe::TEST;
}

void MakeNet(Net* self, const std::string& prototxt, const std::string& phase, int level,
             const std::vector<std::string>& stages, uint64_t seed) {
  caffe::NetParameter param = caffe::ParseNet(prototxt, "prototxt");
  if (level != 0) param.mutable_state()->set_level(level);
  for (const std::string& stage : stages) param.mutable_state()->add_stage(stage);
  caffe::NetContext context;
  context.phase = PhaseOf(phase);
  context.random = std::make_shared<caffe::Random>(seed);
  new (self) Net(param, context);
}

nb::dict BlobsOf(nb::handle self) {
  Net& net = nb::cast<Net&>(self);
  nb::dict blobs;
  for (size_t i = 0; i < net.blob_names().size(); ++i) {
    blobs[net.blob_names()[i].c_str()] =
        nb::cast(&net.blob(i), nb::rv_policy::reference_internal, self);
  }
  return blobs;
}

nb::dict ParamsOf(nb::handle self) {
  nb::dict params;
  for (const caffe::NetLayer& layer : nb::cast<Net&>(self).layers()) {
    if (layer.layer->blobs().empty()) continue;
    nb::list blobs;
    for (const auto& blob : layer.layer->blobs()) {
      blobs.append(nb::cast(blob.get(), nb::rv_policy::reference_internal, self));
    }
    params[layer.layer->name().c_str()] = blobs;
  }
  return params;
}

nb::list LayersOf(const Net& net) {
  nb::list layers;
  for (const caffe::NetLayer& layer : net.layers()) {
    nb::dict fields;
    fields["name"] = layer.layer->name();
    fields["type"] = layer.layer->type();
    fields["bottoms"] = nb::list();
    fields["tops"] = nb::list();
    for (int id : layer.bottom_ids)
      nb::cast<nb::list>(fields["bottoms"]).append(net.blob_names()[id]);
    for (int id : layer.top_ids) nb::cast<nb::list>(fields["tops"]).append(net.blob_names()[id]);
    fields["need_backward"] = layer.need_backward;
    nb::list needed;
    for (bool needs : layer.bottom_need_backward) needed.append(needs);
    fields["bottom_need_backward"] = needed;
    layers.append(fields);
  }
  return layers;
}

nb::list LearnableOf(const Net& net) {
  nb::list learnable;
  for (const caffe::LearnableParam& param : net.params().learnable()) {
    learnable.append(nb::make_tuple(param.lr_mult, param.decay_mult));
  }
  return learnable;
}

std::vector<std::string> LayerNames(const Net& net) {
  std::vector<std::string> names;
  for (const caffe::NetLayer& layer : net.layers()) names.push_back(layer.layer->name());
  return names;
}

void SetInputArrays(Net& net, const Array& data, const Array& labels) {
  for (const caffe::NetLayer& layer : net.layers()) {
    if (auto* fed = dynamic_cast<caffe::ArrayFed*>(layer.layer.get())) {
      return fed->SetArrays(CopyOf(data), CopyOf(labels));
    }
  }
  Throw(ErrorCode::kInvalidArgument, "net '{}' has no MemoryData layer to set arrays of",
        net.name());
}

std::string FilterNetText(const std::string& prototxt) {
  return caffe::WriteText(caffe::FilterNet(caffe::ParseNet(prototxt, "prototxt")));
}

std::string InsertSplitsText(const std::string& prototxt) {
  return caffe::WriteText(caffe::InsertSplits(caffe::ParseNet(prototxt, "prototxt")));
}

}  // namespace

void RegisterNet(nb::module_& m) {
  nb::class_<Blob>(m, "Blob", "A float32 array and its gradient, owned by a net.")
      .def_prop_ro(
          "data", [](Blob& blob) { return ViewOf(blob.data()); }, nb::rv_policy::automatic,
          "The values, as a view: writing to it changes the net.")
      .def_prop_ro(
          "diff", [](Blob& blob) { return ViewOf(blob.diff()); }, nb::rv_policy::automatic,
          "The gradient, as a view.")
      .def_prop_ro("shape", [](const Blob& blob) { return nb::tuple(nb::cast(blob.shape())); })
      .def(
          "reshape", [](Blob& blob, std::vector<int64_t> shape) { blob.Reshape(std::move(shape)); },
          "shape"_a, "Gives the blob a new shape; views taken before keep the old memory.");

  nb::class_<Net>(m, "Net", "A network built from the text of a prototxt. Not thread-safe.")
      .def("__init__", MakeNet, "prototxt"_a, "phase"_a, "level"_a = 0,
           "stages"_a = std::vector<std::string>(), "seed"_a = 0,
           "`phase`: TRAIN or TEST. Raises ValueError that names the line or the layer.")
      .def_prop_ro("name", &Net::name)
      .def_prop_ro("blobs", BlobsOf, "Blobs by name, in the order of the net.")
      .def_prop_ro("params", ParamsOf, "Lists of parameter blobs by layer name.")
      .def_prop_ro("layers", LayersOf, "What each layer is and how it is connected, as dicts.")
      .def_prop_ro("layer_names", LayerNames)
      .def_prop_ro("inputs", &Net::input_names)
      .def_prop_ro("outputs", &Net::output_names)
      .def_prop_ro("learnable", LearnableOf, "(lr_mult, decay_mult) of each learnable parameter.")
      .def("reshape", &Net::Reshape, "Propagates new input shapes.")
      .def("clear_param_diffs", &Net::ClearParamDiffs)
      .def(
          "forward", [](Net& net) { return net.Forward(); },
          nb::call_guard<nb::gil_scoped_release>(), "Runs all layers; returns the loss.")
      .def(
          "backward", [](Net& net) { net.Backward(); }, nb::call_guard<nb::gil_scoped_release>(),
          "Adds to the parameters' diffs.")
      .def("set_input_arrays", SetInputArrays, "data"_a, "labels"_a,
           "Gives the MemoryData layer its items (n, channels, height, width) and n labels.")
      .def(
          "copy_from",
          [](Net& net, const std::string& uri) {
            net.CopyTrainedLayersFrom(caffe::ReadModel(uri));
          },
          "uri"_a, "Weights from a .caffemodel, by layer name.")
      .def(
          "save",
          [](const Net& net, const std::string& uri, bool diffs) {
            caffe::WriteModel(net.ToProto(diffs), uri);
          },
          "uri"_a, "diffs"_a = false, "Writes a .caffemodel.");

  m.def("layer_types", [] { return caffe::LayerRegistry::Default().types(); });
  m.def("filter_net", FilterNetText, "prototxt"_a,
        "The prototxt without the layers that its state's include and exclude rules leave out.");
  m.def("insert_splits", InsertSplitsText, "prototxt"_a,
        "The prototxt with Split layers where a blob has several consumers.");
}

}  // namespace hearth::bindings
