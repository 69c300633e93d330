#include "hearth/caffe/solver/gradient_step.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/net/nan_search.h"
#include "hearth/caffe/solver/iteration_error.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {

GradientStep::GradientStep(const SolverParameter& param, const SolverOptions& options, Net& net,
                           RowCursor& feed)
    : param_(param), options_(options), net_(net), feed_(feed) {
  net_.params().BindDiff(options_.sync->AllocateDiff(net_.params().layout()));
  const bool separate = options_.train_context.device.separate;
  reduced_on_device_ = separate && options_.sync->TakeDeviceDiff(net_.params().device_diff());
  FindStatistics();
  net_.set_on_gradient_ready([this](size_t index) { Report(index); });
}

// BatchNorm's running statistics differ between ranks, because each rank reads other rows. Backward
// leaves their gradients zero, so the statistics are reduced in the gradients' memory, with the
// gradients' weights.
void GradientStep::FindStatistics() {
  if (options_.ranks == 1) return;
  for (const NetParam& param : net_.params().all()) {
    const bool statistic = net_.layers()[static_cast<size_t>(param.layer)].traits.keeps_statistics;
    if (statistic && param.owner < 0) statistics_.push_back(param.learnable);
  }
}

StepGradient GradientStep::Compute(int iteration) {
  gradient_ = {};
  net_.ClearParamDiffs();
  for (int pass = 1; pass <= param_.iter_size(); ++pass) {
    in_last_pass_ = pass == param_.iter_size();
    RunPass(iteration);
  }
  const GradientSync::Result result = options_.sync->Finish(gradient_.local_weight);
  gradient_.all_weight = result.all;
  gradient_.weight = result.summed;
  gradient_.stop = result.stop;
  gradient_.snapshot = result.snapshot;
  options_.observer->OnGradient();
  TakeStatistics();
  return gradient_;
}

void GradientStep::RunPass(int iteration) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point before = Clock::now();
  const std::optional<int64_t> rows = feed_.Fetch();
  gradient_.rows_wait_s += std::chrono::duration<double>(Clock::now() - before).count();
  if (rows && *rows == 0) {
    // A rank without rows contributes zeros, because the other ranks wait for its gradients. It
    // reports them from the last to the first, like Backward.
    for (size_t i = net_.params().learnable().size(); i-- > 0;) Report(i);
    return;
  }
  // A gradient is the mean over a full minibatch. With n rows instead of N, its weight is n / N, so
  // that the sum of the scaled losses is the mean over all rows.
  const double weight =
      rows ? static_cast<double>(*rows) / static_cast<double>(net_.batch_size()) : 1.0;
  net_.SetLossScale(static_cast<float>(weight));
  options_.observer->BeforeForward(net_);
  gradient_.local_weight += weight;  // before Backward, which multiplies statistics by local_weight
  gradient_.rows += rows.value_or(0);
  net_.StartForward();
  // Reading the loss waits for the device, so all work is submitted before it.
  const bool is_on_device = options_.train_context.device.separate;
  if (is_on_device) net_.Backward();
  last_loss_ = net_.FinishForward();
  CheckLoss(iteration);
  gradient_.loss += weight * last_loss_;
  if (!is_on_device) net_.Backward();
}

void GradientStep::CheckLoss(int iteration) {
  const bool was_finite = std::exchange(loss_is_finite_, std::isfinite(last_loss_));
  if (loss_is_finite_ || (!was_finite && !options_.stop_on_nan)) return;
  const NonFinite found = FirstNonFinite(net_);
  const std::string what = fmt::format("the loss is {}; {}", last_loss_, found.text);
  if (options_.stop_on_nan) {
    throw IterationError(ErrorCode::kDataLoss, iteration,
                         what + "; try a lower base_lr or clip_gradients, or check the rows",
                         found.layer);
  }
  log::Warning("iteration {}: {}", iteration, what);
}

void GradientStep::Report(size_t index) {
  if (!in_last_pass_) return;
  Blob& param = *net_.params().learnable()[index].blob;
  if (std::ranges::binary_search(statistics_, index)) {  // sorted in ascending order
    param.diff().copy_(param.data()).mul_(gradient_.local_weight);
  }
  // Both param.diff() and param.device_diff() fill a gradient that was only marked as zero.
  // param.diff() also copies the device's gradient to the host, where the collective reads it.
  const bool on_host = options_.ranks > 1 && !reduced_on_device_;
  on_host ? param.diff() : param.device_diff();
  options_.sync->GradientReady(index);
}

// The diffs of the statistics now contain the weighted sum over the ranks. Divided by the weight,
// this sum is the mean.
void GradientStep::TakeStatistics() {
  for (const size_t index : statistics_) {
    Blob& statistic = *net_.params().learnable()[index].blob;
    const auto weight = static_cast<float>(gradient_.weight);
    float *data = statistic.data_ptr(), *diff = statistic.diff_ptr();
    for (int64_t i = 0; i < statistic.count() && weight > 0; ++i) data[i] = diff[i] / weight;
    statistic.diff().zero_();
  }
}

}  // namespace hearth::caffe
