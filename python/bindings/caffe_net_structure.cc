// Blobs, parameters and layers of hearth.native._caffe.Net. Arrays are views of the engine's
// memory, never copies.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "caffe_blob.h"
#include "caffe_module.h"
#include "caffe_python_layer.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using caffe::Net;

nb::dict BlobsByName(nb::handle self) {
  Net& net = nb::cast<Net&>(self);
  nb::dict blobs;
  for (size_t i = 0; i < net.blob_names().size(); ++i) {
    // A handle keeps the net alive, so an array taken from a temporary net stays valid.
    blobs[net.blob_names()[i].c_str()] = BlobHandle::KeepingAlive(net.blob(i), self);
  }
  return blobs;
}

nb::dict ParamsOf(nb::handle self) {
  nb::dict params;
  for (const caffe::NetLayer& layer : nb::cast<Net&>(self).layers()) {
    if (layer.layer->blobs().empty()) continue;
    params[layer.layer->name().c_str()] = ParamBlobs{LayerHandle::KeepingAlive(*layer.layer, self)};
  }
  return params;
}

nb::list LayerObjectsOf(nb::handle self) {
  nb::list objects;
  for (const caffe::NetLayer& layer : nb::cast<Net&>(self).layers()) {
    objects.append(LayerObject(*layer.layer, self));
  }
  return objects;
}

nb::list NamesOf(const Net& net, const std::vector<int>& blob_ids) {
  nb::list names;
  for (const int id : blob_ids) names.append(net.blob_names()[id]);
  return names;
}

nb::list LayersOf(const Net& net) {
  nb::list layers;
  for (const caffe::NetLayer& layer : net.layers()) {
    nb::dict fields;
    fields["name"] = layer.layer->name();
    fields["type"] = layer.layer->type();
    fields["bottoms"] = NamesOf(net, layer.bottom_ids);
    fields["tops"] = NamesOf(net, layer.top_ids);
    fields["need_backward"] = layer.need_backward;
    nb::list needed;
    for (const bool needs : layer.bottom_need_backward) needed.append(needs);
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

nb::dict LossWeightsOf(const Net& net) {
  const std::vector<std::string>& names = net.blob_names();
  nb::dict weights;
  for (const std::string& name : names) weights[name.c_str()] = 0.f;
  // Like Net::loss_weight, for all blobs at once. If several layers have a blob as a top, the last
  // one counts.
  for (const caffe::NetLayer& layer : net.layers()) {
    for (size_t i = 0; i < layer.top_ids.size(); ++i) {
      weights[names[static_cast<size_t>(layer.top_ids[i])].c_str()] = layer.loss_weights[i];
    }
  }
  return weights;
}

std::vector<std::string> LayerNames(const Net& net) {
  std::vector<std::string> names;
  for (const caffe::NetLayer& layer : net.layers()) names.push_back(layer.layer->name());
  return names;
}

}  // namespace

void BindNetStructure(nb::class_<Net>* net) {
  net->def_prop_ro("name", &Net::name)
      .def_prop_ro("blobs", BlobsByName, "Blobs by name, in the order of the net.")
      .def_prop_ro("params", ParamsOf, "Parameter blobs by layer name.")
      .def_prop_ro("layers", LayersOf, "Description of each layer and its connections, as dicts.")
      .def_prop_ro("layer_objects", LayerObjectsOf,
                   "The layers: the user's own objects for Python layers, Layer for others.")
      .def_prop_ro("layer_names", LayerNames)
      .def_prop_ro("inputs", &Net::input_names)
      .def_prop_ro("outputs", &Net::output_names)
      .def_prop_ro("loss_weights", LossWeightsOf, "Loss weight by blob name.")
      .def_prop_ro("learnable", LearnableOf, "(lr_mult, decay_mult) of each learnable parameter.");
}

}  // namespace hearth::bindings
