// The steps that upgrade an old net to the current format; net_file.h runs them in this order. Each
// step returns false and changes nothing if it does not apply. `name` is the file's name, for
// messages.
#pragma once

#include <string>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Converts V0 and V1 `layers` to `layer`. Throws kInvalidArgument if a net has both, if a V0 type
// is unknown, and if a layer after a V0 padding layer cannot pad. Logs V0 fields that the layer's
// type does not use.
bool UpgradeOldLayers(NetParameter* net, const std::string& name);

// Replaces `input` and its shapes with an Input layer at the front. Throws kInvalidArgument if the
// numbers of inputs and shapes do not match.
bool UpgradeInputs(NetParameter* net, const std::string& name);

// Sets the multipliers of BatchNorm's three statistics to 0. Old files do so themselves, but not
// always for all three.
bool UpgradeBatchNorms(NetParameter* net);

}  // namespace hearth::caffe
