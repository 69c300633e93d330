// Small layers run on one thread. Waking the others and waiting for them costs some microseconds
// where the cores are free; where another process uses them, it costs a time slice, milliseconds
// for each region: logistic regression became 30 times slower.
#pragma once

#include <cstdint>

#include "hearth/caffe/net/net_graph.h"

namespace hearth::caffe {

// About how many multiplications a pass through the layer takes; rather too many than too few. It
// follows from the shapes of its bottoms and parameters alone, so that a layer has the same
// threads, and with them the same order of sums, in every run. The largest number if they do not
// tell.
int64_t WorkOf(const NetLayer& layer);

// While it lives, what the calling thread starts runs on this thread alone if the work is small,
// whether by ATen, oneDNN or OpenMP. Kernels that are made for a number of threads must be made and
// run under one of these of the same layer.
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
