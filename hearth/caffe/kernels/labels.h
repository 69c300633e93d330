// Class labels, which Caffe stores as floats.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "hearth/base/error.h"
#include "hearth/caffe/tensor/blob.h"

namespace hearth::caffe {

// The shape of scores around their class axis: outer x classes x inner. There is one label per
// position of outer x inner.
struct ClassLayout {
  int64_t outer = 0, classes = 0, inner = 0;

  static ClassLayout Of(const Blob& scores, int64_t axis) {
    const int64_t a = scores.CanonicalAxis(axis);
    return {scores.count(0, a), scores.shape(a), scores.count(a + 1)};
  }

  void RequireLabels(const Blob& labels) const {
    Require(labels.count() == outer * inner, ErrorCode::kInvalidArgument,
            "scores of {} x {} classes x {} need {} labels, but the label blob has shape {}", outer,
            classes, inner, outer * inner, labels.ShapeString());
  }

  // Returns the index of the score of class c for label i.
  int64_t Index(int64_t i, int64_t c) const {
    return (i / inner * classes + c) * inner + i % inner;
  }
};

// Truncates a label as Caffe does. NaN and numbers beyond int64 become INT64_MIN, which is neither
// a class nor an ignore_label.
inline int64_t TruncatedLabel(float label) {
  return std::abs(label) < 0x1p63F ? static_cast<int64_t>(label)
                                   : std::numeric_limits<int64_t>::min();
}

// Returns the label at `index`, or nullopt if it is the ignored label. Throws kInvalidArgument if
// it is not a class.
inline std::optional<int64_t> ClassLabel(const float* labels, int64_t index, int64_t classes,
                                         std::optional<int64_t> ignored) {
  const int64_t label = TruncatedLabel(labels[index]);
  if (label == ignored) return std::nullopt;
  Require(
      label >= 0 && label < classes, ErrorCode::kInvalidArgument,
      "label {} at position {} is not one of the classes 0 to {}; check the data and num_output "
      "of the layer below",
      labels[index], index, classes - 1);
  return label;
}

template <typename Param>
std::optional<int64_t> IgnoredLabel(const Param& param) {
  if (!param.has_ignore_label()) return std::nullopt;
  return param.ignore_label();
}

}  // namespace hearth::caffe
