// Test helper for tools that apply a trained net.
#pragma once

#include <string>
#include <vector>

#include "hearth/caffe/snapshot/snapshot.h"

namespace hearth::caffe {

// Writes a model whose InnerProduct layer "ip" has these weights, one row per output, and no bias.
inline void WriteInnerProduct(int64_t inputs, const std::vector<float>& weights,
                              const std::string& path) {
  NetParameter model;
  LayerParameter* layer = model.add_layer();
  layer->set_name("ip");
  BlobProto* blob = layer->add_blobs();
  *blob->mutable_shape()->mutable_dim() = {static_cast<int64_t>(weights.size()) / inputs, inputs};
  blob->mutable_data()->assign(weights.begin(), weights.end());
  WriteModel(model, path);
}

}  // namespace hearth::caffe
