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

constexpr int64_t kMinBiasValues = 16384;  // minimum number of values worth a thread
constexpr int64_t kLongRow = 512;

HEARTH_FOR_EACH_CPU void AddEach(const float* rows, int64_t count, int64_t size, float* sums) {
  for (int64_t i = 0; i < count; ++i, rows += size) {
#pragma GCC ivdep
    for (int64_t j = 0; j < size; ++j) sums[j] += rows[j];
  }
}

void AddRowsOnThreads(const float* rows, int64_t count, int64_t size, float* sums) {
  const int64_t threads = ThreadCount();
  thread_local std::vector<float> of_threads;
  of_threads.assign(static_cast<size_t>(threads * size), 0.f);
  float* parts = of_threads.data();
  ParallelFor(0, count, kMinBiasValues / size + 1, [&](int64_t begin, int64_t end) {
    AddRows(rows + begin * size, end - begin, size, parts + ThreadNumber() * size);
  });
  AddRows(parts, threads, size, sums);
}

}  // namespace

void AddRows(const float* rows, int64_t count, int64_t size, float* sums) {
  // Treats several short rows as one long one: a loop over a few values is slow.
  if (size <= kLongRow / 2 && count * size > kLongRow) {
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
