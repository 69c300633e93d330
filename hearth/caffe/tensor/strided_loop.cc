#include "hearth/caffe/tensor/strided_loop.h"

#include <algorithm>
#include <cstring>

#include "hearth/base/for_each_cpu.h"

namespace hearth::caffe {
namespace {

HEARTH_FOR_EACH_CPU void AddDense(float* to, const float* from, float factor, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

HEARTH_FOR_EACH_CPU void MultiplyDense(float* to, const float* from, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) to[i] *= from[i];
}

HEARTH_FOR_EACH_CPU void MultiplyBy(float* to, float factor, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] *= factor;
}

}  // namespace

StridedPlan::StridedPlan(const Numbers& sizes, const Numbers& to, const Numbers& from) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    // An axis of size 1 has an arbitrary stride and would prevent merging.
    if (sizes[i] != 1) axes_.push_back({sizes[i], to[i], from[i]});
  }
  // Sorts the axes by the strides of the written array, so that writes are as sequential as
  // possible.
  std::stable_sort(axes_.begin(), axes_.end(), [](const Axis& a, const Axis& b) {
    return a.to != b.to ? a.to > b.to : a.from > b.from;
  });
  std::vector<Axis> merged;
  for (const Axis& axis : axes_) {
    // Two axes are merged if, in both arrays, the outer stride is the inner size times the inner
    // stride.
    const bool joins = !merged.empty() && merged.back().to == axis.size * axis.to &&
                       merged.back().from == axis.size * axis.from;
    if (joins) {
      merged.back() = {merged.back().size * axis.size, axis.to, axis.from};
    } else {
      merged.push_back(axis);
    }
  }
  axes_ = std::move(merged);
  if (axes_.empty()) axes_.push_back({1, 1, 1});
  for (size_t i = 0; i + 1 < axes_.size(); ++i) rows_ *= axes_[i].size;
  // If an axis other than the last one has size 0, the product is already 0.
  if (axes_.back().size == 0) rows_ = 0;
}

StridedPlan::Offsets StridedPlan::RowAt(int64_t row) const {
  Offsets at;
  // Splits the row number into one index per axis, for all axes but the last.
  for (size_t i = axes_.size() - 1; i-- > 0;) {
    const int64_t index = row % axes_[i].size;
    row /= axes_[i].size;
    at.to += index * axes_[i].to;
    at.from += index * axes_[i].from;
  }
  return at;
}

// Most rows are dense or repeat one value. With other strides, values are copied one by one.
void CopyRow(float* to, int64_t a, const float* from, int64_t b, int64_t count) {
  if (a == 1 && b == 1) {
    if (to != from) std::memmove(to, from, static_cast<size_t>(count) * sizeof(float));
  } else if (a == 1 && b == 0) {
    std::fill_n(to, count, *from);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * a] = from[i * b];
  }
}

void MultiplyRow(float* to, int64_t a, const float* from, int64_t b, int64_t count) {
  if (a == 1 && b == 1) {
    MultiplyDense(to, from, count);
  } else if (a == 1 && b == 0) {
    MultiplyBy(to, *from, count);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * a] *= from[i * b];
  }
}

void AddRow::operator()(float* to, int64_t a, const float* from, int64_t b, int64_t count) const {
  if (a == 1 && b == 1) {
    AddDense(to, from, factor, count);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * a] += factor * from[i * b];
  }
}

}  // namespace hearth::caffe
