// Parts of UpgradeOldLayers: convert one layer of an old format to the current one. Moves the old
// layer's blobs, since they may be large.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

LayerParameter UpgradeV1Layer(V1LayerParameter* old);
// Returns true if its data parameters have fields that belong to transform_param now. Caffe then
// gives both messages to every data layer of the net, even if they are empty.
bool HasOldTransform(const V1LayerParameter& old);
void AddTransform(LayerParameter* layer);
// For a connection with a `layer`, which is how V0 wrote a layer.
LayerParameter UpgradeV0Layer(V1LayerParameter* old, const std::string& name);

// V0 had padding layers: removes them and sets the pad of the layers that they feed.
void RemoveV0Padding(std::vector<V1LayerParameter>* layers, const std::string& name);

// Converts learning rates and weight decays per blob to ParamSpecs. OldLayer: V0 or V1.
template <typename OldLayer>
void UpgradeMultipliers(const OldLayer& old, LayerParameter* layer) {
  auto& params = *layer->mutable_param();
  params.resize(std::max({params.size(), old.blobs_lr().size(), old.weight_decay().size()}));
  for (int i = 0; i < old.blobs_lr_size(); ++i) params[i].set_lr_mult(old.blobs_lr(i));
  for (int i = 0; i < old.weight_decay_size(); ++i) params[i].set_decay_mult(old.weight_decay(i));
}

}  // namespace hearth::caffe
