#include "hearth/trainer/step/weight_average.h"

#include <chrono>

#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::trainer {

caffe::Tensor WeightAverage::AllocateDiff(const caffe::ParamLayout& layout) {
  AllocateControls();
  return caffe::Tensor::Zeros({layout.size});
}

// In the steps since the last average, rank r has trained on n(r) of N rows. The average is the sum
// over r of n(r) / N times the weights of rank r. Between averages, each rank applies its own
// gradient in full.
double WeightAverage::WeightOfGradient(double local) {
  own_since_ += local;
  all_since_ += total_weight();
  if (updates_ == 0) first_ = total_weight();
  return local;
}

void WeightAverage::Updated(bool needs_equal_weights, const State& state) {
  // Near the end of an epoch, ranks run out of rows at different steps. Average at the first step
  // with fewer rows, while most ranks still have some.
  const bool fewer = total_weight() != first_;
  if (++updates_ < every_ && !needs_equal_weights && !fewer) return;
  const auto before = std::chrono::steady_clock::now();
  const Deadline until = deadline();
  // Averages the weights and the solver's history, because ranks with different momenta would
  // diverge again at once.
  for (caffe::Tensor& values : state()) {
    // Ranks are weighted by their rows, so that a rank without rows does not dilute what the others
    // have learned.
    if (own_since_ > 0) {
      values.mul_(own_since_ / all_since_);
    } else {
      values.zero_();  // multiplying by 0 would keep NaN and infinity
    }
    group().AllReduce(values.data_ptr(), static_cast<size_t>(values.numel()),
                      collective::DataType::kFloat32, collective::Op::kSum, until);
  }
  AddWait(std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
  updates_ = 0;
  own_since_ = all_since_ = 0;
}

}  // namespace hearth::trainer
