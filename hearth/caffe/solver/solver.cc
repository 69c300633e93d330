#include "hearth/caffe/solver/solver.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <tuple>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/timeline.h"
#include "hearth/caffe/net/debug_info.h"
#include "hearth/caffe/net/device_ops.h"
#include "hearth/caffe/net/nan_search.h"
#include "hearth/caffe/solver/gradient_norm.h"
#include "hearth/caffe/solver/iteration_error.h"
#include "hearth/caffe/solver/solver_nets.h"

namespace hearth::caffe {
namespace {

std::unique_ptr<Net> BuildNet(const NetParameter& param, NetContext context, Phase phase,
                              const LayerRegistry* registry) {
  context.phase = phase;
  return std::make_unique<Net>(param, context, registry ? *registry : LayerRegistry::Default());
}

// Distinguishes the snapshots of different programs with the same prefix.
std::string NewRunName() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

void CheckParam(const SolverParameter& param) {
  Require(param.iter_size() >= 1 && param.average_loss() >= 1, ErrorCode::kInvalidArgument,
          "the solver's iter_size and average_loss must be at least 1, found {} and {}",
          param.iter_size(), param.average_loss());
  Require(param.max_iter() >= 0 && param.test_interval() >= 0 && param.snapshot() >= 0 &&
              param.display() >= 0,
          ErrorCode::kInvalidArgument,
          "the solver's max_iter, test_interval, snapshot and display must not be negative");
}

}  // namespace

Solver::Solver(SolverParameter param, SolverOptions options)
    : param_(std::move(param)),
      options_(std::move(options)),
      sync_(options_.sync ? options_.sync : std::make_shared<LocalSync>()),
      learning_rate_(param_),
      rule_(MakeUpdateRule(param_)) {
  CheckParam(param_);
  if (options_.run.empty()) options_.run = NewRunName();
  seed_ = param_.random_seed() >= 0 ? static_cast<uint64_t>(param_.random_seed()) : options_.seed;
  NetContext& context = options_.train_context;
  if (!context.random) context.random = std::make_shared<Random>(MixSeed(seed_, options_.rank));
  random_ = context.random;
  context.rank = static_cast<int>(options_.rank);
  context.ranks = options_.ranks;
  context.seed = options_.test_context.seed = seed_;
  if (param_.debug_info()) context.share_diffs = false;  // like a single net
  net_ = BuildNet(TrainNetOf(param_), context, TRAIN, options_.registry);
  for (const std::string& uri : param_.weights()) LoadWeights(uri);
  BuildTestNets(MixSeed(seed_, options_.rank + (uint64_t{1} << 32)));
  const ParamLayout& layout = net_->params().layout();
  net_->params().BindDiff(sync_->AllocateDiff(layout));
  const bool separate = context.device.separate;
  reduced_on_device_ = separate && sync_->TakeDeviceDiff(net_->params().device_diff());
  for (int i = 0; i < rule_->history_count(); ++i) {
    history_.emplace_back(Shape{layout.size}).set_device(context.device);
    history_.back().device_data();  // threads that share it must not allocate its
                                    // memory on first use
  }
  update_end_ = layout.size;
  FindStatistics();
  net_->set_on_gradient_ready([this](size_t index) { ReportGradient(index); });
  if (options_.is_root && param_.debug_info()) {
    LogDebugInfo(*net_, [this] { return DisplayIsDue(); });
  }
  CheckSnapshotPrefix();
}

Solver::~Solver() = default;

void Solver::BuildTestNets(uint64_t seed) {
  if (options_.validate || param_.test_iter().empty()) return;
  Require(param_.test_interval() > 0, ErrorCode::kInvalidArgument,
          "the solver has test_iter but no test_interval; set it, or remove test_iter");
  NetContext& context = options_.test_context;
  if (!context.random) context.random = std::make_shared<Random>(seed);
  if (!options_.is_root) return;
  for (const NetParameter& net : TestNetsOf(param_)) {
    test_nets_.push_back(BuildNet(net, context, TEST, options_.registry));
    if (param_.debug_info()) LogDebugInfo(*test_nets_.back(), [] { return true; });
  }
}

void Solver::Solve() {
  if (options_.is_root) {
    log::Info("Solving {}", net_->name());
    log::Info("Learning Rate Policy: {}", param_.lr_policy());
  }
  Step(param_.max_iter() - iteration_);
  const bool just_done = param_.snapshot() > 0 && iteration_ % param_.snapshot() == 0;
  if (param_.snapshot_after_train() && !just_done) SnapshotOnRoot();
  if (stopped_) {
    if (options_.is_root) log::Info("Optimization stopped early.");
    return;
  }
  DisplayLastLoss();
  if (param_.test_interval() > 0 && iteration_ % param_.test_interval() == 0) RunTests();
  if (options_.is_root) log::Info("Optimization Done.");
}

void Solver::Step(int iterations) {
  stop_at_ = iteration_ + iterations;
  stopped_ = false;
  display_clock_ = Clock::now();
  display_iteration_ = iteration_;
  while (iteration_ < stop_at_ && !stopped_) {
    const bool test_is_due = param_.test_interval() > 0 && iteration_ % param_.test_interval() == 0;
    if (test_is_due && (iteration_ > 0 || param_.test_initialization())) RunTests();
    RunIteration();
    SnapshotIfDue();
    stopped_ = stop_requested_.exchange(false);
  }
}

bool Solver::DisplayIsDue() const {
  return param_.display() > 0 && iteration_ % param_.display() == 0;
}

void Solver::RunTests() {
  if (options_.validate) {
    options_.validate(iteration_);
  } else if (options_.is_root) {
    TestAll();
  }
}

void Solver::RunIteration() {
  const std::string title =
      timeline::On() ? fmt::format("iteration {}", iteration_ + 1) : std::string();
  const timeline::Span span("solver", title);
  // A separate random stream per rank and iteration: a resumed run gets the same one, for any
  // number of ranks, without state in the snapshot.
  random_->engine().seed(
      MixSeed(MixSeed(seed_, options_.rank), 1 + static_cast<uint64_t>(iteration_)));
  ComputeGradient();
  if (gradient_.all_weight == 0) {
    // All ranks see the same sum, so all of them begin the next epoch here.
    net_->NextEpoch();
    ++epoch_;
    fetches_ = 0;
    ComputeGradient();
    if (gradient_.all_weight <= 0) {
      throw IterationError(ErrorCode::kInvalidArgument, iteration_,
                           "no rows to train on: a whole epoch had none; check the data source",
                           "");
    }
  }
  const bool has_rows = gradient_.local_weight > 0;
  const auto loss = static_cast<float>(has_rows ? gradient_.loss / gradient_.local_weight
                                                : std::numeric_limits<double>::quiet_NaN());
  if (has_rows) UpdateSmoothedLoss(loss);
  const float rate = learning_rate_.At(iteration_);
  if (options_.is_root && DisplayIsDue()) Display(rate);
  // Ranks that average periodically may have no gradient in this iteration.
  if (gradient_.weight > 0) ApplyUpdate(rate);
  ++iteration_;
  sync_->Updated(WeightsAreShown());
  if (options_.on_iteration) {
    options_.on_iteration(
        {iteration_, loss, smoothed_loss_, rate, gradient_.rows, gradient_.rows_wait_s});
  }
}

void Solver::ComputeGradient() {
  gradient_ = {};
  net_->ClearParamDiffs();
  for (int pass = 1; pass <= param_.iter_size(); ++pass) {
    in_last_pass_ = pass == param_.iter_size();
    RunPass();
  }
  const GradientSync::Weights weights = sync_->Finish(gradient_.local_weight);
  gradient_.all_weight = weights.all;
  gradient_.weight = weights.summed;
  TakeStatistics();
}

void Solver::RunPass() {
  const Clock::time_point before = Clock::now();
  const std::optional<int64_t> rows = net_->Fetch();
  gradient_.rows_wait_s += std::chrono::duration<double>(Clock::now() - before).count();
  ++fetches_;
  if (rows && *rows == 0) {
    for (size_t i = net_->params().learnable().size(); i-- > 0;) ReportGradient(i);
    return;
  }
  const double weight =
      rows ? static_cast<double>(*rows) / static_cast<double>(net_->batch_size()) : 1.0;
  net_->SetLossScale(static_cast<float>(weight));
  if (options_.before_forward) options_.before_forward(*net_);
  gradient_.local_weight += weight;  // before Backward, which weights statistics by it
  gradient_.rows += rows.value_or(0);
  net_->StartForward();
  // Reading the loss waits for the device, so do it after all work has been submitted.
  const bool is_on_device = options_.train_context.device.separate;
  if (is_on_device) net_->Backward();
  last_loss_ = net_->FinishForward();
  CheckLoss();
  gradient_.loss += weight * last_loss_;
  if (!is_on_device) net_->Backward();
}

bool Solver::WeightsAreShown() const {
  const auto is_due = [this](int interval) { return interval > 0 && iteration_ % interval == 0; };
  return iteration_ >= stop_at_ || is_due(param_.snapshot()) || is_due(param_.test_interval()) ||
         stop_requested_ || snapshot_requested_;
}

void Solver::CheckLoss() {
  const bool was_finite = std::exchange(loss_is_finite_, std::isfinite(last_loss_));
  if (loss_is_finite_ || (!was_finite && !options_.stop_on_nan)) return;
  const NonFinite found = FirstNonFinite(*net_);
  const std::string what = fmt::format("the loss is {}; {}", last_loss_, found.text);
  if (options_.stop_on_nan) {
    throw IterationError(ErrorCode::kDataLoss, iteration_,
                         what + "; try a lower base_lr or clip_gradients, or check the rows",
                         found.layer);
  }
  log::Warning("iteration {}: {}", iteration_, what);
}

// BatchNorm's running statistics differ between ranks with different rows. They are reduced in
// place of their gradient, which backward leaves zero, with the same weights.
void Solver::FindStatistics() {
  if (options_.ranks == 1) return;
  for (const NetParam& param : net_->params().all()) {
    const bool statistic = net_->layers()[static_cast<size_t>(param.layer)].traits.keeps_statistics;
    if (statistic && param.owner < 0) statistics_.push_back(param.learnable);
  }
}

void Solver::ReportGradient(size_t index) {
  if (!in_last_pass_) return;
  Blob& param = *net_->params().learnable()[index].blob;
  if (std::binary_search(statistics_.begin(), statistics_.end(),
                         index)) {  // in ascending order
    param.diff().copy_(param.data()).mul_(gradient_.local_weight);
  }
  // When requested, fills a gradient that was only marked as zero, and copies a device's to where
  // the collective reads it.
  const bool on_host = options_.ranks > 1 && !reduced_on_device_;
  on_host ? param.diff() : param.device_diff();
  sync_->GradientReady(index);
}

void Solver::TakeStatistics() {
  for (const size_t index : statistics_) {
    Blob& statistic = *net_->params().learnable()[index].blob;
    const auto weight = static_cast<float>(gradient_.weight);
    float *data = statistic.data_ptr(), *diff = statistic.diff_ptr();
    for (int64_t i = 0; i < statistic.count() && weight > 0; ++i) data[i] = diff[i] / weight;
    statistic.diff().zero_();
  }
}

// The diffs hold the sum over all ranks and passes of gradients that are means over full
// minibatches. Caffe clips the sum over passes of the mean over ranks.
float Solver::GradientScale() {
  const double iter_size = param_.iter_size();
  double scale = iter_size / gradient_.weight;
  const float limit = param_.clip_gradients();
  if (limit >= 0) {
    const double norm = scale * GradientNorm();
    if (norm > limit) {
      if (options_.is_root) {
        log::Info(
            "Gradient clipping: scaling down gradients (L2 norm {:g} > {:g}) by scale factor {:g}",
            norm, limit, limit / norm);
      }
      scale *= limit / norm;
    }
  }
  return static_cast<float>(scale / iter_size);
}

double Solver::GradientNorm() {
  NetParams& params = net_->params();
  if (options_.train_context.device.separate) return NormOf(params.device_diff());
  const Tensor& diff = params.diff();
  return std::sqrt(SumOfSquares(diff.data_ptr(), diff.numel()));
}

void Solver::ApplyUpdate() {
  const auto passes = static_cast<double>(param_.iter_size());
  gradient_ = {.weight = passes, .all_weight = passes};
  ApplyUpdate(learning_rate_.At(iteration_));
  ++iteration_;
}

void Solver::set_base_lr(float base_lr) {
  param_.set_base_lr(base_lr);
  learning_rate_.set_base_lr(base_lr);
}

void Solver::ApplyUpdate(float rate) {
  const timeline::Span span("solver", "update");
  const NetParams& params = net_->params();
  const float scale = GradientScale();
  std::map<std::pair<float, float>, TensorUpdate> on_device;
  for (size_t i = 0; i < params.learnable().size(); ++i) {
    const LearnableParam& param = params.learnable()[i];
    const float lr = rate * param.lr_mult;
    const float decay = param_.weight_decay() * param.decay_mult;
    if (options_.train_context.device.separate) {
      AddToUpdate(i, &on_device[{lr, decay}]);
    } else {
      UpdateOnHost(i, {nullptr, nullptr, {}, 0, scale, lr, decay});
    }
  }
  for (auto& [rates, update] : on_device) {
    std::tie(update.rate, update.decay) = rates;
    update.gradient_scale = scale;
    rule_->Apply(update, iteration_);
  }
  if (wait_for_update_) wait_for_update_();
}

// Not from params.data(): the weights may be another net's (ShareTrainedLayersWith).
void Solver::AddToUpdate(size_t index, TensorUpdate* update) {
  const ParamLayout::Slice slice = net_->params().layout().slices[index];
  Blob& blob = *net_->params().learnable()[index].blob;
  update->data.push_back(blob.device_data().view({-1}));
  update->diff.push_back(blob.device_diff().view({-1}));
  for (size_t j = 0; j < history_.size(); ++j) {
    update->history[j].push_back(history_[j].device_data().narrow(0, slice.offset, slice.count));
  }
}

void Solver::UpdateOnHost(size_t index, const ParamUpdate& rates) {
  const ParamLayout::Slice slice = net_->params().layout().slices[index];
  const int64_t begin = std::max(slice.offset, update_begin_);
  const int64_t end = std::min(slice.offset + slice.count, update_end_);
  if (begin >= end) return;
  Blob& blob = *net_->params().learnable()[index].blob;
  ParamUpdate update = rates;
  update.data = blob.data_ptr() + begin - slice.offset;
  update.diff = blob.diff_ptr() + begin - slice.offset;
  update.count = end - begin;
  for (size_t j = 0; j < history_.size(); ++j) update.history[j] = history_[j].data_ptr() + begin;
  rule_->Apply(update, iteration_);
}

bool Solver::CanShareWeights() const {
  const std::vector<NetLayer>& layers = net_->layers();
  const bool writes = std::any_of(layers.begin(), layers.end(), [](const NetLayer& layer) {
    const bool in_forward = layer.traits.keeps_statistics || layer.traits.runs_user_code;
    return in_forward && !layer.layer->blobs().empty();
  });
  return !writes && !options_.train_context.device.separate;
}

void Solver::ShareWeights(Solver& owner, int part, int parts, std::function<void()> wait) {
  const int64_t size = net_->params().layout().size;
  update_begin_ = size * part / parts;
  update_end_ = size * (part + 1) / parts;
  wait_for_update_ = std::move(wait);
  if (&owner == this) return;
  net_->params().ShareData(owner.net_->params());
  for (size_t j = 0; j < history_.size(); ++j) history_[j].ShareData(owner.history_[j]);
}

std::vector<Tensor> Solver::history() {
  std::vector<Tensor> groups;
  groups.reserve(history_.size());
  for (Blob& group : history_) groups.push_back(group.data());
  return groups;
}

}  // namespace hearth::caffe
