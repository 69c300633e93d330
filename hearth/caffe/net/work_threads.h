// Runs small layers on one thread. Waking other threads and waiting for them costs some
// microseconds if the cores are idle. If another process uses the cores, it costs a time slice,
// which is milliseconds per parallel region; it made logistic regression 30 times slower.
#pragma once

#include <cstdint>

#include "hearth/caffe/net/net_graph.h"

namespace hearth::caffe {

// Estimates the number of multiplications in a pass through the layer, rather too high than too
// low. The result depends only on the shapes of bottoms and parameters, so a layer uses the same
// number of threads, and therefore sums in the same order, in every run. If no estimate is
// possible, returns the largest int64_t.
int64_t WorkOf(const NetLayer& layer);

// While the object exists and if the layer's work is small, makes everything that the calling
// thread runs with ATen, oneDNN or OpenMP run on this thread alone. Kernels that are created for a
// number of threads must be created and run under a WorkThreads for the same layer.
class WorkThreads {
 public:
  explicit WorkThreads(const NetLayer& layer);
  ~WorkThreads();
  WorkThreads(const WorkThreads&) = delete;
  WorkThreads& operator=(const WorkThreads&) = delete;

 private:
  int before_ = 1;
};

}  // namespace hearth::caffe
