// A checksum of the rows of a batch, by which two readings of the same rows are compared.
#pragma once

#include <cstdint>

#include "hearth/feed/batch_view.h"

namespace hearth::feed {

// The same for equal rows wherever their buffers lie: padding does not count, nor do validity bits
// where nothing is null. Thread-safe; never throws.
uint32_t Checksum(const BatchView& batch);

}  // namespace hearth::feed
