// Finds where in a net the first NaN or infinity appeared.
#pragma once

#include <string>

#include "hearth/caffe/net/net.h"

namespace hearth::caffe {

// Result of the search.
struct NonFinite {
  std::string text;  // "layer 'fc6' (InnerProduct) is the first to produce a non-finite value, ..."
  std::string layer;  // empty: no layer has one any more
};

// After a Forward with a non-finite loss: the first layer in order with such a value in its
// parameters or tops.
NonFinite FirstNonFinite(Net& net);

}  // namespace hearth::caffe
