// Where in a net the first value came up that is no number.
#pragma once

#include <string>

#include "hearth/caffe/net.h"

namespace hearth::caffe {

// After a Forward with a loss that is not finite: a clause such as "layer 'fc6' (InnerProduct) made
// it of finite inputs: top 'fc6'", for the first layer in order with such a value in its parameters
// or tops.
std::string FirstNonFinite(Net& net);

}  // namespace hearth::caffe
