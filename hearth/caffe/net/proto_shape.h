// Shapes of blobs as files state them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// Whether the shape is in the legacy num, channels, height, width.
bool HasLegacyShape(const BlobProto& proto);
// In either form.
std::vector<int64_t> ShapeOf(const BlobProto& proto);
std::string ShapeString(const BlobProto& proto);

}  // namespace hearth::caffe
