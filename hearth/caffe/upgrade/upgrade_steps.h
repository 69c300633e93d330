// The steps that bring an old net to the current format; net_file.h runs them in this order. Each
// leaves a net that has nothing of its kind as it is and returns false. `name` is the file's, for
// messages.
#pragma once

#include <string>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// V0 and V1 `layers` become `layer`. Throws kInvalidArgument where a net has both, for unknown V0
// types and for V0 padding layers in front of what cannot pad; logs V0 fields that the layer's type
// does not use.
bool UpgradeOldLayers(NetParameter* net, const std::string& name);

// `input` with its shapes becomes an Input layer in front of the others. Throws kInvalidArgument
// where the numbers of inputs and shapes do not fit.
bool UpgradeInputs(NetParameter* net, const std::string& name);

// Old files give BatchNorm's three statistics multipliers of 0 by hand, not always all of them.
bool UpgradeBatchNorms(NetParameter* net);

}  // namespace hearth::caffe
