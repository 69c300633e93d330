// Multithreaded loops over two arrays with the same shape and any memory order. Used by tensor.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {

// How to iterate over two arrays: their common sizes, and the strides of each. A stride of 0
// repeats a value.
class StridedPlan {
 public:
  using Numbers = std::vector<int64_t>;
  // Merges axes that are contiguous in both arrays, and sorts the axes by the strides of the first
  // array, with the smallest last.
  StridedPlan(const Numbers& sizes, const Numbers& to, const Numbers& from);

  int64_t rows() const { return rows_; }  // 0 if there are no values
  int64_t row_size() const { return axes_.back().size; }
  int64_t to_stride() const { return axes_.back().to; }
  int64_t from_stride() const { return axes_.back().from; }

  // The offsets of a row in both arrays.
  struct Offsets {
    int64_t to = 0, from = 0;
  };
  Offsets RowAt(int64_t row) const;

 private:
  // The size of an axis, and its strides in both arrays.
  struct Axis {
    int64_t size, to, from;
  };
  std::vector<Axis> axes_;  // at least one
  int64_t rows_ = 1;
};

// Calls row(to, stride, from, stride, count) for each row.
template <typename Row>
void StridedLoop(const StridedPlan& plan, float* to, const float* from, Row row) {
  constexpr int64_t kGrain = 32768;
  const int64_t size = plan.row_size();
  if (plan.rows() == 1) {
    const int64_t a = plan.to_stride(), b = plan.from_stride();
    ParallelFor(0, size, kGrain, [&](int64_t begin, int64_t end) {
      row(to + begin * a, a, from + begin * b, b, end - begin);
    });
    return;
  }
  ParallelFor(0, plan.rows(), kGrain / (size + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const StridedPlan::Offsets at = plan.RowAt(r);
      row(to + at.to, plan.to_stride(), from + at.from, plan.from_stride(), size);
    }
  });
}

void CopyRow(float* to, int64_t a, const float* from, int64_t b, int64_t count);
void MultiplyRow(float* to, int64_t a, const float* from, int64_t b, int64_t count);

// to += factor * from
struct AddRow {
  float factor;
  void operator()(float* to, int64_t a, const float* from, int64_t b, int64_t count) const;
};

}  // namespace hearth::caffe
