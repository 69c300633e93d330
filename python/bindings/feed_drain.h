// Consumers for measurements and tests: they take rows as a trainer does and look at the values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "hearth/feed/minibatch.h"
#include "hearth/feed/ring_reader.h"

namespace hearth::bindings {

// Reads to the ring's end, touching each cache line; (rows, bytes of images).
std::pair<int64_t, int64_t> DrainRing(feed::RingReader& ring, double timeout_s);

// Takes all minibatches of the epoch, gathers the column's values of each in one buffer, and starts
// the next epoch; (rows, sum of all numbers, or of every 64th byte of strings).
std::pair<int64_t, double> DrainEpoch(feed::MinibatchSource& source, int64_t batch_size,
                                      const std::string& column);

}  // namespace hearth::bindings
