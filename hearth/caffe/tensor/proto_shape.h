// Shapes of blobs in files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Returns true if the shape is in the legacy fields num, channels, height, width.
bool HasLegacyShape(const BlobProto& proto);
// Returns the shape, from the legacy fields or from `shape`.
std::vector<int64_t> ShapeOf(const BlobProto& proto);
std::string ShapeString(const BlobProto& proto);

}  // namespace hearth::caffe
