// How long each layer of a net takes on this machine: what `caffe time` prints.
#pragma once

#include "hearth/trainer/local_options.h"

namespace hearth::trainer {

// Runs options.model forward and backward options.iterations times after one that is not counted,
// and logs the mean milliseconds per layer and in all. Throws hearth::Error.
void TimeLocally(const LocalOptions& options);

}  // namespace hearth::trainer
