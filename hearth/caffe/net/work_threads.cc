#include "hearth/caffe/net/work_threads.h"

#include <omp.h>

#include <algorithm>
#include <limits>

#include "hearth/caffe/tensor/parallel.h"

namespace hearth::caffe {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
// About 40 microseconds on one core: below it a second core may save less than it costs.
constexpr int64_t kLeastForThreads = 1 << 20;
// Reading and writing an element takes as long as this many products that hit the cache.
constexpr int64_t kProductsPerElement = 16;

// Number of uses of each weight of a matrix or of kernels.
int64_t UsesOfWeights(const LayerTraits& traits, const Blob& bottom) {
  if (traits.matrix_axis) return bottom.count(0, bottom.CanonicalAxis(*traits.matrix_axis));
  const bool has_channels = bottom.num_axes() > 1;
  return bottom.count() / std::max<int64_t>(1, has_channels ? bottom.shape(1) : 1);
}

}  // namespace

int64_t WorkOf(const NetLayer& layer) {
  // User code may take any time, and a layer without bottoms gives no estimate.
  if (layer.bottom.empty() || layer.traits.runs_user_code) return kUnknown;
  int64_t work = 0;
  for (const Blob* bottom : layer.bottom) {
    work += bottom->count() * kProductsPerElement;
    for (const auto& blob : layer.layer->blobs()) {
      // Vectors are applied to each element once.
      if (blob->num_axes() < 2) continue;
      work += blob->count() * UsesOfWeights(layer.traits, *bottom);
      if (work >= kLeastForThreads) return work;  // before it can overflow
    }
  }
  return work;
}

WorkThreads::WorkThreads(const NetLayer& layer) {
  if (WorkOf(layer) >= kLeastForThreads) return;
  const int threads = ThreadCount();  // the first call sets a thread's count
  if (threads == 1) return;
  before_ = threads;
  omp_set_num_threads(1);
}

WorkThreads::~WorkThreads() {
  if (before_ > 1) omp_set_num_threads(before_);
}

}  // namespace hearth::caffe
