#include "hearth/caffe/tensor/proto_shape.h"

#include <fmt/format.h>

#include <optional>

#include "hearth/caffe/tensor/shape_count.h"

namespace hearth::caffe {

bool HasLegacyShape(const BlobProto& proto) {
  return proto.has_num() || proto.has_channels() || proto.has_height() || proto.has_width();
}

// Like Caffe's Blob::FromProto: if any legacy field is set, `shape` is ignored.
std::vector<int64_t> ShapeOf(const BlobProto& proto) {
  if (HasLegacyShape(proto)) {
    return {proto.num(), proto.channels(), proto.height(), proto.width()};
  }
  return proto.shape().dim();
}

std::string ShapeString(const BlobProto& proto) {
  std::string text;
  const std::vector<int64_t> shape = ShapeOf(proto);
  for (const int64_t dim : shape) text += fmt::format("{} ", dim);
  const std::optional<int64_t> count = CountOf(shape);
  return text + (count ? fmt::format("({})", *count) : "(too many)");
}

}  // namespace hearth::caffe
