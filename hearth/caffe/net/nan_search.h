// Finds where in a net the first NaN or infinity appeared.
#pragma once

#include <string>

#include "hearth/caffe/net/net.h"

namespace hearth::caffe {

// Result of FirstNonFinite().
struct NonFinite {
  std::string text;  // "layer 'fc6' (InnerProduct) is the first to produce a non-finite value, ..."
  std::string layer;  // empty if no non-finite value is left in the net
};

// Finds the first layer, in order, with a NaN or infinity in its parameters or tops. Must be called
// after a Forward with a non-finite loss.
NonFinite FirstNonFinite(Net& net);

}  // namespace hearth::caffe
