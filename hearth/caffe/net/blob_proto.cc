#include "hearth/caffe/net/blob_proto.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "hearth/base/error.h"
#include "hearth/caffe/net/shape_count.h"

namespace hearth::caffe {
namespace {

bool IsLegacy(const BlobProto& proto) {
  return proto.has_num() || proto.has_channels() || proto.has_height() || proto.has_width();
}

// Files of old double-precision builds hold doubles.
template <typename Values>
void CopyValues(const Values& values, int64_t count, const char* what, float* to) {
  Require(static_cast<int64_t>(values.size()) == count, ErrorCode::kDataLoss,
          "a stored blob holds {} {} value(s), {} are needed", values.size(), what, count);
  std::copy(values.begin(), values.end(), to);
}

}  // namespace

Shape ShapeOf(const BlobProto& proto) {
  if (IsLegacy(proto)) return {proto.num(), proto.channels(), proto.height(), proto.width()};
  return proto.shape().dim();
}

std::string ShapeString(const BlobProto& proto) {
  std::string text;
  const Shape shape = ShapeOf(proto);
  for (const int64_t dim : shape) text += fmt::format("{} ", dim);
  const std::optional<int64_t> count = CountOf(shape);
  return text + (count ? fmt::format("({})", *count) : "(too many)");
}

bool HasShapeOf(const Blob& blob, const BlobProto& proto) {
  Shape shape = blob.shape();
  if (IsLegacy(proto) && shape.size() < 4) shape.insert(shape.begin(), 4 - shape.size(), 1);
  return shape == ShapeOf(proto);
}

void ReadBlobData(const BlobProto& proto, Blob* blob) {
  if (!proto.double_data().empty()) {
    CopyValues(proto.double_data(), blob->count(), "data", blob->data_ptr());
  } else {
    CopyValues(proto.data(), blob->count(), "data", blob->data_ptr());
  }
  if (!proto.double_diff().empty()) {
    CopyValues(proto.double_diff(), blob->count(), "diff", blob->diff_ptr());
  } else if (!proto.diff().empty()) {
    CopyValues(proto.diff(), blob->count(), "diff", blob->diff_ptr());
  }
}

void WriteBlob(Blob& blob, bool write_diff, BlobProto* proto) {
  *proto->mutable_shape()->mutable_dim() = blob.shape();
  const float* data = blob.data_ptr();
  proto->mutable_data()->assign(data, data + blob.count());
  if (!write_diff) return;
  proto->mutable_diff()->assign(static_cast<size_t>(blob.count()), 0);
  if (blob.diff_identity() != nullptr) {
    std::copy_n(blob.read_diff(), blob.count(), proto->mutable_diff()->begin());
  }
}

}  // namespace hearth::caffe
