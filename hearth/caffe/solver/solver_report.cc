// The part of Solver that tests and reports, in Caffe's log format.
#include <cmath>
#include <iterator>
#include <numeric>
#include <string>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/solver/solver.h"

namespace hearth::caffe {
namespace {

// " (* 0.5 = 0.25 loss)" for an output that is part of the loss.
std::string LossPart(float weight, double value) {
  return weight == 0 ? "" : fmt::format(" (* {:g} = {:g} loss)", weight, weight * value);
}

void LogOutputs(const char* kind, Net& net, const std::vector<double>& values) {
  size_t index = 0;
  for (const std::string& name : net.output_names()) {
    const float weight = net.loss_weight(name);
    for (int64_t i = 0; i < net.blob(name).count() && index < values.size(); ++i, ++index) {
      log::Info("    {} net output #{}: {} = {:g}{}", kind, index, name, values[index],
                LossPart(weight, values[index]));
    }
  }
}

// Adds the values of all output blobs, concatenated, times `weight` to `sums`.
void AddOutputs(Net& net, double weight, std::vector<double>* sums) {
  size_t index = 0;
  for (const std::string& name : net.output_names()) {
    Blob& blob = net.blob(name);
    const float* data = blob.data_ptr();
    if (sums->size() < index + static_cast<size_t>(blob.count())) {
      sums->resize(index + static_cast<size_t>(blob.count()), 0);
    }
    for (int64_t i = 0; i < blob.count(); ++i, ++index) (*sums)[index] += weight * data[i];
  }
}

// Reads the next minibatch, from the next epoch if this one has ended.
std::optional<int64_t> FetchAround(Net& net) {
  std::optional<int64_t> rows = net.Fetch();
  if (rows && *rows == 0) {
    net.NextEpoch();
    rows = net.Fetch();
  }
  Require(!rows || *rows > 0, ErrorCode::kInvalidArgument, "test net '{}' has no rows", net.name());
  return rows;
}

}  // namespace

void Solver::UpdateSmoothedLoss(float loss) {
  losses_.push_back(loss);
  if (losses_.size() > static_cast<size_t>(param_.average_loss())) losses_.pop_front();
  smoothed_loss_ = static_cast<float>(std::accumulate(losses_.begin(), losses_.end(), 0.0) /
                                      static_cast<double>(losses_.size()));
}

void Solver::Display(float rate) {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - display_clock_).count();
  const int done = iteration_ - display_iteration_;
  log::Info("Iteration {} ({:g} iter/s, {:g}s/{} iters), loss = {:g}", iteration_,
            seconds > 0 ? done / seconds : 0.0, seconds, param_.display(), smoothed_loss_);
  display_clock_ = now;
  display_iteration_ = iteration_;
  std::vector<double> values;
  AddOutputs(*net_, 1, &values);
  LogOutputs("Train", *net_, values);
  log::Info("Iteration {}, lr = {:g}", iteration_, rate);
}

void Solver::DisplayLastLoss() {
  if (!options_.is_root || !DisplayIsDue()) return;
  // As in Caffe, one more forward pass shows the loss after the last update; a feed may have no
  // more rows.
  const std::optional<int64_t> rows = net_->Fetch();
  if (!rows || *rows > 0) {
    // Only the root runs a forward pass here, which must not change statistics that all ranks keep
    // equal.
    Tensor before;
    if (!statistics_.empty()) before = net_->params().data().clone();
    UpdateSmoothedLoss(net_->Forward());
    if (before.defined()) net_->params().data().copy_(before);
  }
  log::Info("Iteration {}, loss = {:g}", iteration_, smoothed_loss_);
}

void Solver::TestAll() {
  for (size_t i = 0; i < test_nets_.size(); ++i) Test(i);
}

void Solver::Test(size_t index) {
  log::Info("Iteration {}, Testing net (#{})", iteration_, index);
  Net& net = *test_nets_[index];
  net.ShareTrainedLayersWith(*net_);
  std::vector<double> sums;
  double loss = 0, weight = 0;
  for (int i = 0; i < param_.test_iter(static_cast<int>(index)); ++i) {
    if (options_.test_interrupted && options_.test_interrupted()) {
      log::Info("Test interrupted.");
      return;
    }
    const auto part = static_cast<double>(FetchAround(net).value_or(1));
    loss += part * net.Forward();
    AddOutputs(net, part, &sums);
    weight += part;
  }
  if (weight == 0) return;
  if (param_.test_compute_loss()) log::Info("Test loss: {:g}", loss / weight);
  for (double& sum : sums) sum /= weight;
  LogOutputs("Test", net, sums);
  if (options_.on_test) options_.on_test(index, net, sums);
}

}  // namespace hearth::caffe
