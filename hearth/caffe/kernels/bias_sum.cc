#include "hearth/caffe/kernels/bias_sum.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "hearth/base/for_each_cpu.h"
#include "hearth/caffe/tensor/device_ops.h"
#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

constexpr int64_t kMinBiasValues = 16384;  // minimum number of values per thread
// Length of the rows that are summed: long enough to vectorize, and short enough to keep the sums
// (2 KB) on the stack.
constexpr int64_t kLongRow = 512;

HEARTH_FOR_EACH_CPU void AddEach(const float* rows, int64_t count, int64_t size, float* sums) {
  for (int64_t i = 0; i < count; ++i, rows += size) {
#pragma GCC ivdep
    for (int64_t j = 0; j < size; ++j) sums[j] += rows[j];
  }
}

// Each thread sums a range of rows separately, and the partial sums are added in the order of the
// threads. With the same number of threads, every run has the same bits.
void AddRowsOnThreads(const float* rows, int64_t count, int64_t size, float* sums) {
  const int64_t threads = ThreadCount();
  thread_local std::vector<float> of_threads;
  of_threads.assign(static_cast<size_t>(threads * size), 0.f);
  // The threads use this pointer, because in each of them the name of the thread_local variable
  // of_threads refers to a different vector.
  float* parts = of_threads.data();
  ParallelFor(0, count, kMinBiasValues / size + 1, [&](int64_t begin, int64_t end) {
    AddRows(rows + begin * size, end - begin, size, parts + ThreadNumber() * size);
  });
  AddRows(parts, threads, size, sums);
}

}  // namespace

void AddRows(const float* rows, int64_t count, int64_t size, float* sums) {
  // Treats several short rows as one long row, because a loop over a few values is slow.
  if (size <= kLongRow / 2 && count * size > kLongRow) {
    // A long row consists of `together` short rows, so the sum of all long rows consists of
    // `together` partial sums. The remaining short rows, fewer than `together`, are added one by
    // one.
    const int64_t together = kLongRow / size;
    std::array<float, kLongRow> of_long_rows = {};
    const int64_t long_rows = count / together;
    AddEach(rows, long_rows, together * size, of_long_rows.data());
    AddEach(of_long_rows.data(), together, size, sums);
    rows += long_rows * together * size;
    count -= long_rows * together;
  }
  AddEach(rows, count, size, sums);
}

void AddBiasSum(const Tensor& dy, Tensor& db) {
  if (!dy.on_host()) {
    db.add_(dy.sum(0));
    return;
  }
  // db[o] = sum over n and positions of dy[n, o, position]. With channels last, or without
  // positions, the values of all outputs are adjacent, so the images are rows of a matrix.
  // Otherwise each plane of an output is contiguous.
  const int64_t outputs = dy.size(1);
  const int64_t positions = dy.numel() / std::max<int64_t>(1, dy.size(0) * outputs);
  const float* values = dy.data_ptr();
  float* sums = db.data_ptr();
  if (dy.dim() == 2 || dy.is_channels_last()) {
    return AddRowsOnThreads(values, dy.size(0) * positions, outputs, sums);
  }
  for (int64_t plane = 0; plane < dy.size(0) * outputs; ++plane, values += positions) {
    sums[plane % outputs] += std::accumulate(values, values + positions, 0.f);
  }
}

}  // namespace hearth::caffe
