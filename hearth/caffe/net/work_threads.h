// Runs small layers on one thread. Waking the others and waiting for them costs some microseconds
// if the cores are idle; if another process uses them, it costs a time slice, milliseconds per
// region: logistic regression became 30 times slower.
#pragma once

#include <cstdint>

#include "hearth/caffe/net/net_graph.h"

namespace hearth::caffe {

// Approximate number of multiplications in a pass through the layer, rather too high than too low.
// It depends only on the shapes of its bottoms and parameters, so that a layer uses the same
// threads, and therefore the same order of sums, in every run. The largest number if the shapes
// give no estimate.
int64_t WorkOf(const NetLayer& layer);

// During its lifetime, if the work is small, everything that the calling thread starts runs on this
// thread alone, whether by ATen, oneDNN or OpenMP. Kernels that are created for a number of threads
// must be created and run under an instance for the same layer.
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
