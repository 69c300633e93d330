// Functions of UpgradeOldLayers that convert one layer of an old format to the current format. They
// move the blobs out of the old layer, since blobs may be large.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

LayerParameter UpgradeV1Layer(V1LayerParameter* old);
// Returns true if the layer's data parameters contain fields that now belong to transform_param. If
// any layer of a net does, Caffe adds transform_param and the data parameters, possibly empty, to
// every data layer of the net.
bool HasOldTransform(const V1LayerParameter& old);
void AddTransform(LayerParameter* layer);
// Converts a V0 layer, which is the field `layer` of a V1LayerParameter.
LayerParameter UpgradeV0Layer(V1LayerParameter* old, const std::string& name);

// Removes V0's padding layers, and sets the pad of the layers that read from them.
void RemoveV0Padding(std::vector<V1LayerParameter>* layers, const std::string& name);

// Converts learning rates and weight decays of blobs to ParamSpecs. OldLayer is the V0 or the V1
// type.
template <typename OldLayer>
void UpgradeMultipliers(const OldLayer& old, LayerParameter* layer) {
  auto& params = *layer->mutable_param();
  params.resize(std::max({params.size(), old.blobs_lr().size(), old.weight_decay().size()}));
  for (int i = 0; i < old.blobs_lr_size(); ++i) params[i].set_lr_mult(old.blobs_lr(i));
  for (int i = 0; i < old.weight_decay_size(); ++i) params[i].set_decay_mult(old.weight_decay(i));
}

}  // namespace hearth::caffe
