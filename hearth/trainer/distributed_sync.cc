#include "hearth/trainer/distributed_sync.h"

#include <chrono>
#include <utility>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/timeline.h"

namespace hearth::trainer {
namespace {

// The control values fill a cache line, so that the gradients behind them stay aligned. They are
// piece 0: buckets are launched from the back, which leaves them the last one, when the weight of
// this rank is known.
constexpr int64_t kControls = caffe::ParamLayout::kAlignment;
constexpr size_t kControlPieces = 1;
enum Control { kWeight, kStop, kBadRows, kSnapshot };

}  // namespace

at::Tensor DistributedSync::AllocateDiff(const caffe::ParamLayout& layout) {
  std::vector<size_t> pieces{static_cast<size_t>(kControls)};
  for (size_t i = 0; i < layout.slices.size(); ++i) {
    const int64_t end = i + 1 < layout.slices.size() ? layout.slices[i + 1].offset : layout.size;
    pieces.push_back(static_cast<size_t>(end - layout.slices[i].offset));
  }
  const auto floats = static_cast<size_t>(kControls + layout.size);
  controls_ = static_cast<float*>(group_.Allocate(floats * sizeof(float)));
  collective::BucketReducerOptions options;
  options.timeout_s = timeout_s_;
  reducer_ = std::make_unique<collective::BucketReducer>(group_, controls_, pieces, options);
  return at::from_blob(controls_ + kControls, {layout.size}, at::kFloat);
}

void DistributedSync::GradientReady(size_t index) { reducer_->Ready(index + kControlPieces); }

double DistributedSync::Finish(double local_weight) {
  controls_[kWeight] = static_cast<float>(local_weight);
  controls_[kStop] = stop_requested_.load() ? 1.0f : 0.0f;
  controls_[kSnapshot] = snapshot_requested_.exchange(false) ? 1.0f : 0.0f;
  controls_[kBadRows] = std::exchange(bad_rows_, 0.0f);
  const timeline::Span span("solver", "wait for other ranks' gradients");
  const auto before = std::chrono::steady_clock::now();
  reducer_->Wait(Deadline::After(timeout_s_));
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - before;
  wait_s_ = waited.count();
  total_weight_ = controls_[kWeight];
  total_bad_rows_ = static_cast<int64_t>(controls_[kBadRows]);
  if (controls_[kStop] > 0 && on_stop_) on_stop_();
  if (controls_[kSnapshot] > 0 && on_snapshot_) on_snapshot_();
  if (on_finish_) on_finish_();
  return total_weight_;
}

}  // namespace hearth::trainer
