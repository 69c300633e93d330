// Distributes the minibatches of one source round-robin to several device threads.
#pragma once

#include <memory>
#include <vector>

#include "hearth/dataset/spool/minibatch.h"

namespace hearth::dataset {

// Returns one source per device: of D devices, device d gets minibatches d, d + D, d + 2D, ... of
// `source`'s epoch, whichever thread calls first; after the last minibatch, a device gets none.
// Each returned source may be used by one thread; nothing else may use `source`. All devices must
// request the same number of rows, and start an epoch only after all have reached the end of the
// previous one. The calls wait like those of `source` and throw the same errors.
std::vector<std::shared_ptr<MinibatchSource>> RoundRobinSources(
    std::shared_ptr<MinibatchSource> source, int devices);

}  // namespace hearth::dataset
