#include "hearth/trainer/step/distributed_sync.h"

#include <chrono>
#include <utility>

#include "hearth/base/timeline.h"
#include "hearth/trainer/step/gradient_sums.h"
#include "hearth/trainer/step/weight_average.h"

namespace hearth::trainer {
namespace {

// Indices of the control values, which are summed over the ranks together with the gradients. The
// sum of a request is above 0 if any rank has made it, so all ranks act on it after the same step.
// Counts are float32, so they are exact up to 2^24.
enum Control { kWeight, kStop, kInvalidRows, kSnapshot };

}  // namespace

void DistributedSync::AllocateControls() {
  own_controls_.resize(static_cast<size_t>(kControls));
  controls_ = own_controls_.data();
}

void DistributedSync::SumControls(Deadline deadline) {
  group_.AllReduce(controls_, static_cast<size_t>(kControls), collective::DataType::kFloat32,
                   collective::Op::kSum, deadline);
}

std::unique_ptr<collective::BucketReducer> DistributedSync::MakeReducer(
    float* buffer, const std::vector<size_t>& sizes, collective::Memory memory) {
  collective::BucketReducerOptions options;
  options.timeout_s = timeout_s_;
  options.memory = memory;
  return std::make_unique<collective::BucketReducer>(group_, buffer, sizes, options);
}

caffe::GradientSync::Result DistributedSync::Finish(double local_weight) {
  controls_[kWeight] = static_cast<float>(local_weight);
  // The stop request is not reset, because the ranks end after this step. The snapshot request is
  // reset, because it is for one snapshot.
  controls_[kStop] = stop_requested_.load() ? 1.0f : 0.0f;
  controls_[kSnapshot] = snapshot_requested_.exchange(false) ? 1.0f : 0.0f;
  controls_[kInvalidRows] = std::exchange(invalid_rows_, 0.0f);
  const timeline::Span span("solver", "wait for other ranks' gradients");
  const auto before = std::chrono::steady_clock::now();
  WaitForSum(deadline());
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - before;
  wait_s_ = waited.count();
  total_weight_ = controls_[kWeight];
  total_invalid_rows_ = static_cast<int64_t>(controls_[kInvalidRows]);
  gradient_weight_ = WeightOfGradient(local_weight);
  return {total_weight_, gradient_weight_, controls_[kStop] > 0, controls_[kSnapshot] > 0};
}

// Each size includes the padding after the slice, because the reducer requires ranges without gaps.
// Padding is zero and stays zero when it is summed.
std::vector<size_t> PaddedSizes(const caffe::ParamLayout& layout) {
  std::vector<size_t> sizes;
  for (size_t i = 0; i < layout.slices.size(); ++i) {
    const int64_t end = i + 1 < layout.slices.size() ? layout.slices[i + 1].offset : layout.size;
    sizes.push_back(static_cast<size_t>(end - layout.slices[i].offset));
  }
  return sizes;
}

std::unique_ptr<DistributedSync> MakeDistributedSync(collective::Group& group, double timeout_s,
                                                     int every, bool gpus) {
  if (every > 1) return std::make_unique<WeightAverage>(group, timeout_s, every);
  if (gpus) return std::make_unique<DeviceGradientSum>(group, timeout_s);
  return std::make_unique<HostGradientSum>(group, timeout_s);
}

}  // namespace hearth::trainer
