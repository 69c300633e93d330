#include "hearth/base/error.h"
#include "hearth/caffe/upgrade/upgrade_layer.h"
#include "hearth/caffe/upgrade/upgrade_steps.h"

namespace hearth::caffe {

bool UpgradeOldLayers(NetParameter* net, const std::string& name) {
  if (net->layers().empty()) return false;
  Require(net->layer().empty(), ErrorCode::kInvalidArgument,
          "{}: it has {} `layer` and {} `layers`, which is the old format; write all of them as "
          "`layer`",
          name, net->layer_size(), net->layers_size());
  // Padding layers are removed before the layers are converted, because only the V0 format has
  // them.
  RemoveV0Padding(net->mutable_layers(), name);
  bool moves_transform = false;
  for (V1LayerParameter& old : *net->mutable_layers()) {
    moves_transform = moves_transform || HasOldTransform(old);
    net->mutable_layer()->push_back(old.has_layer() ? UpgradeV0Layer(&old, name)
                                                    : UpgradeV1Layer(&old));
  }
  if (moves_transform) {
    for (LayerParameter& layer : *net->mutable_layer()) AddTransform(&layer);
  }
  net->clear_layers();
  return true;
}

}  // namespace hearth::caffe
