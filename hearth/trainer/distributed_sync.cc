#include "hearth/trainer/distributed_sync.h"

#include <chrono>
#include <utility>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/timeline.h"
#include "hearth/caffe/net/device_ops.h"

namespace hearth::trainer {
namespace {

// The control values fill a cache line, so that the gradients behind them stay aligned. They are
// chunk 0: buckets are launched from the back, so this one is last, when the weight of this rank is
// known.
constexpr int64_t kControls = caffe::ParamLayout::kAlignment;
constexpr size_t kControlChunks = 1;
enum Control { kWeight, kStop, kInvalidRows, kSnapshot };

}  // namespace

caffe::Tensor DistributedSync::AllocateDiff(const caffe::ParamLayout& layout) {
  for (size_t i = 0; i < layout.slices.size(); ++i) {
    const int64_t end = i + 1 < layout.slices.size() ? layout.slices[i + 1].offset : layout.size;
    gradients_.push_back(static_cast<size_t>(end - layout.slices[i].offset));
  }
  if (every_ > 1 || on_device_) {
    own_controls_.resize(static_cast<size_t>(kControls));
    controls_ = own_controls_.data();
    return caffe::Tensor::Zeros({layout.size});
  }
  std::vector<size_t> sizes{static_cast<size_t>(kControls)};
  sizes.insert(sizes.end(), gradients_.begin(), gradients_.end());
  const auto floats = static_cast<size_t>(kControls + layout.size);
  controls_ = static_cast<float*>(group_.Allocate(floats * sizeof(float)));
  MakeReducer(controls_, sizes, collective::Memory::kHost);
  return caffe::Tensor::Over(controls_ + kControls, {layout.size});
}

bool DistributedSync::TakeDeviceDiff(const caffe::Tensor& diff) {
  if (!on_device_) return false;
  device_diff_ = diff;
  MakeReducer(device_diff_.data_ptr(), gradients_, collective::Memory::kDevice);
  return true;
}

void DistributedSync::MakeReducer(float* buffer, const std::vector<size_t>& sizes,
                                  collective::Memory memory) {
  collective::BucketReducerOptions options;
  options.timeout_s = timeout_s_;
  options.memory = memory;
  reducer_ = std::make_unique<collective::BucketReducer>(group_, buffer, sizes, options);
}

void DistributedSync::GradientReady(size_t index) {
  if (reducer_) reducer_->Ready(on_device_ ? index : index + kControlChunks);
}

void DistributedSync::SumControls(Deadline deadline) {
  group_.AllReduce(controls_, static_cast<size_t>(kControls), collective::DataType::kFloat32,
                   collective::Op::kSum, deadline);
}

caffe::GradientSync::Weights DistributedSync::Finish(double local_weight) {
  controls_[kWeight] = static_cast<float>(local_weight);
  controls_[kStop] = stop_requested_.load() ? 1.0f : 0.0f;
  controls_[kSnapshot] = snapshot_requested_.exchange(false) ? 1.0f : 0.0f;
  controls_[kInvalidRows] = std::exchange(invalid_rows_, 0.0f);
  const timeline::Span span("solver", "wait for other ranks' gradients");
  const auto before = std::chrono::steady_clock::now();
  const Deadline deadline = Deadline::After(timeout_s_);
  if (reducer_) reducer_->Wait(deadline);
  if (!own_controls_.empty()) SumControls(deadline);
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - before;
  wait_s_ = waited.count();
  total_weight_ = controls_[kWeight];
  total_invalid_rows_ = static_cast<int64_t>(controls_[kInvalidRows]);
  if (controls_[kStop] > 0 && on_stop_) on_stop_();
  if (controls_[kSnapshot] > 0 && on_snapshot_) on_snapshot_();
  if (on_finish_) on_finish_();
  if (!reducer_) {
    own_since_ += local_weight;
    all_since_ += total_weight_;
    if (updates_ == 0) first_ = total_weight_;
  }
  gradient_weight_ = reducer_ ? total_weight_ : local_weight;
  return {total_weight_, gradient_weight_};
}

void DistributedSync::Updated(bool shown) {
  if (reducer_) return;
  // Once some ranks have fewer rows, as at the end of an epoch, soon only some ranks have any.
  const bool fewer = total_weight_ != first_;
  if (++updates_ < every_ && !shown && !fewer) return;
  const auto before = std::chrono::steady_clock::now();
  const Deadline deadline = Deadline::After(timeout_s_);
  for (caffe::Tensor& values : averaged_()) {
    // Ranks are weighted by their rows: one without rows has learned nothing and must not dilute
    // the others.
    if (own_since_ > 0) {
      values.mul_(own_since_ / all_since_);
    } else {
      values.zero_();  // multiplying by 0 would keep NaN and infinity
    }
    group_.AllReduce(values.data_ptr(), static_cast<size_t>(values.numel()),
                     collective::DataType::kFloat32, collective::Op::kSum, deadline);
  }
  wait_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  updates_ = 0;
  own_since_ = all_since_ = 0;
}

}  // namespace hearth::trainer
