// The steps that upgrade an old net to the current format; net_file.h runs them in this order. Each
// returns false and changes nothing if it does not apply. `name` is the file's, for messages.
#pragma once

#include <string>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// V0 and V1 `layers` become `layer`. Throws kInvalidArgument if a net has both, for unknown V0
// types and for V0 padding layers before a layer that cannot pad; logs V0 fields that the layer's
// type ignores.
bool UpgradeOldLayers(NetParameter* net, const std::string& name);

// `input` with its shapes becomes an Input layer at the front. Throws kInvalidArgument if the
// numbers of inputs and shapes do not match.
bool UpgradeInputs(NetParameter* net, const std::string& name);

// Old files set multipliers of 0 for BatchNorm's three statistics by hand, but not always for all.
bool UpgradeBatchNorms(NetParameter* net);

}  // namespace hearth::caffe
