#include "hearth/caffe/tensor/blob_proto.h"

#include <algorithm>

#include "hearth/base/error.h"

namespace hearth::caffe {
namespace {

// Compares the number of values with `count`, because the shape in a file need not match its
// values. Files from old double-precision builds contain doubles.
template <typename Values>
void CopyValues(const Values& values, int64_t count, const char* what, float* to) {
  Require(static_cast<int64_t>(values.size()) == count, ErrorCode::kDataLoss,
          "a stored blob has {} {} value(s), expected {}", values.size(), what, count);
  std::copy(values.begin(), values.end(), to);
}

}  // namespace

bool HasShapeOf(const Blob& blob, const BlobProto& proto) {
  // Compares like Caffe's Blob::ShapeEquals. In files from before BlobShape existed, shapes have
  // four axes, with leading ones if the blob has fewer axes.
  Shape shape = blob.shape();
  if (HasLegacyShape(proto) && shape.size() < 4) shape.insert(shape.begin(), 4 - shape.size(), 1);
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
  // Reading a diff would allocate it, so zeros are written if the diff was never used.
  proto->mutable_diff()->assign(static_cast<size_t>(blob.count()), 0);
  if (blob.diff_identity() != nullptr) {
    std::copy_n(blob.read_diff(), blob.count(), proto->mutable_diff()->begin());
  }
}

}  // namespace hearth::caffe
