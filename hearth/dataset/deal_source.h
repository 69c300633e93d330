// One stream of minibatches dealt to several device threads like cards.
#pragma once

#include <memory>
#include <vector>

#include "hearth/dataset/minibatch.h"

namespace hearth::dataset {

// Source d of the result gives minibatches d, D + d, 2D + d, ... of `source`'s epoch, whichever
// thread asks first; a device whose turn comes after the last minibatch gets none. Each may be used
// by a thread of its own; `source` by nobody else. All devices ask for the same number of rows and
// start an epoch after all have reached the end of the one before.
std::vector<std::shared_ptr<MinibatchSource>> DealSource(std::shared_ptr<MinibatchSource> source,
                                                         int devices);

}  // namespace hearth::dataset
