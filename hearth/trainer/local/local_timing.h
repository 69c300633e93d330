// Measures each layer of a net on this machine, for `caffe time`.
#pragma once

#include "hearth/trainer/local/local_options.h"

namespace hearth::trainer {

// Runs options.model forward and backward options.iterations times after one untimed pass, and logs
// the mean milliseconds per layer and in total. Throws hearth::Error.
void TimeLocally(const LocalOptions& options);

}  // namespace hearth::trainer
