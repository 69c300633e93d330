#include "hearth/trainer/step/weight_average.h"

#include <chrono>

#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::trainer {

caffe::Tensor WeightAverage::AllocateDiff(const caffe::ParamLayout& layout) {
  AllocateControls();
  return caffe::Tensor::Zeros({layout.size});
}

// Over the steps since the last average, rank r has trained on n(r) of N rows; the average is the
// sum over r of n(r) / N times its weights. Its own gradient is applied in full meanwhile.
double WeightAverage::WeightOfGradient(double local) {
  own_since_ += local;
  all_since_ += total_weight();
  if (updates_ == 0) first_ = total_weight();
  return local;
}

void WeightAverage::Updated(bool needs_equal_weights, const State& state) {
  // Ranks run out of rows at different steps near the end of an epoch: average at the first step
  // with fewer rows, while most ranks have some.
  const bool fewer = total_weight() != first_;
  if (++updates_ < every_ && !needs_equal_weights && !fewer) return;
  const auto before = std::chrono::steady_clock::now();
  const Deadline until = deadline();
  // Weights and the solver's history: ranks with different momenta would move apart again at once.
  for (caffe::Tensor& values : state()) {
    // Ranks are weighted by their rows: one without rows has learned nothing and must not dilute
    // the others.
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
