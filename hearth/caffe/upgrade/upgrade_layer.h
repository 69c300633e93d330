// Parts of UpgradeOldLayers: one layer of an old format as one of today's. The old layer's blobs
// move, since they may be large.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

LayerParameter UpgradeV1Layer(V1LayerParameter* old);
// Whether it has fields in its data parameters that today belong to transform_param. Caffe then
// gives every data layer of the net both messages, though they be empty.
bool HasOldTransform(const V1LayerParameter& old);
void AddTransform(LayerParameter* layer);
// Of a connection that has a `layer`, which is how V0 wrote a layer.
LayerParameter UpgradeV0Layer(V1LayerParameter* old, const std::string& name);

// V0 padded by a layer of its own: such layers go, and the layers that they feed pad instead.
void RemoveV0Padding(std::vector<V1LayerParameter>* layers, const std::string& name);

// Learning rates and weight decays by blob become ParamSpecs. OldLayer: V0 or V1.
template <typename OldLayer>
void UpgradeMultipliers(const OldLayer& old, LayerParameter* layer) {
  auto& params = *layer->mutable_param();
  params.resize(std::max({params.size(), old.blobs_lr().size(), old.weight_decay().size()}));
  for (int i = 0; i < old.blobs_lr_size(); ++i) params[i].set_lr_mult(old.blobs_lr(i));
  for (int i = 0; i < old.weight_decay_size(); ++i) params[i].set_decay_mult(old.weight_decay(i));
}

}  // namespace hearth::caffe
