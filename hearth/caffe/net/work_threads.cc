#include "hearth/caffe/net/work_threads.h"

#include <omp.h>

#include <algorithm>
#include <limits>

#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
// Multiplications that take about 40 microseconds on one core. For fewer of them, a second core may
// save less time than it costs.
constexpr int64_t kLeastForThreads = 1 << 20;
// Reading and writing an element takes as long as this number of multiplications whose operands are
// in the cache.
constexpr int64_t kProductsPerElement = 16;

// How many times each weight of a matrix or kernel is used.
int64_t UsesOfWeights(const LayerTraits& traits, const Blob& bottom) {
  if (traits.matrix_axis) return bottom.count(0, bottom.CanonicalAxis(*traits.matrix_axis));
  const bool has_channels = bottom.num_axes() > 1;
  return bottom.count() / std::max<int64_t>(1, has_channels ? bottom.shape(1) : 1);
}

}  // namespace

int64_t WorkOf(const NetLayer& layer) {
  // The time of user code is unknown, and a layer without bottoms allows no estimate.
  if (layer.bottom.empty() || layer.traits.runs_user_code) return kUnknown;
  int64_t work = 0;
  for (const Blob* bottom : layer.bottom) {
    work += bottom->count() * kProductsPerElement;
    for (const auto& blob : layer.layer->blobs()) {
      // A vector, such as a bias, is applied once to each element, which is already counted.
      if (blob->num_axes() < 2) continue;
      work += blob->count() * UsesOfWeights(layer.traits, *bottom);
      if (work >= kLeastForThreads) return work;  // avoids an overflow
    }
  }
  return work;
}

WorkThreads::WorkThreads(const NetLayer& layer) {
  if (WorkOf(layer) >= kLeastForThreads) return;
  const int threads = ThreadCount();  // the first call sets this thread's OpenMP thread count
  if (threads == 1) return;
  before_ = threads;
  omp_set_num_threads(1);
}

WorkThreads::~WorkThreads() {
  if (before_ > 1) omp_set_num_threads(before_);
}

}  // namespace hearth::caffe
