#include "hearth/caffe/solver.h"

#include <cmath>
#include <limits>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/gradient_norm.h"
#include "hearth/caffe/solver_nets.h"

namespace hearth::caffe {
namespace {

std::unique_ptr<Net> BuildNet(const NetParameter& param, NetContext context, Phase phase,
                              const LayerRegistry* registry) {
  context.phase = phase;
  return std::make_unique<Net>(param, context, registry ? *registry : LayerRegistry::Default());
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
  const uint64_t seed =
      param_.random_seed() >= 0 ? static_cast<uint64_t>(param_.random_seed()) : options_.seed;
  NetContext& context = options_.train_context;
  if (!context.random) context.random = std::make_shared<Random>(MixSeed(seed, options_.rank));
  random_ = context.random;
  net_ = BuildNet(TrainNetOf(param_), context, TRAIN, options_.registry);
  for (const std::string& uri : param_.weights()) LoadWeights(uri);
  BuildTestNets(MixSeed(seed, options_.rank + (uint64_t{1} << 32)));
  const ParamLayout& layout = net_->params().layout();
  net_->params().BindDiff(sync_->AllocateDiff(layout));
  for (int i = 0; i < rule_->history_count(); ++i) {
    history_.push_back(at::zeros({layout.size}, at::kFloat));
  }
  net_->set_on_gradient_ready([this](size_t index) {
    if (in_last_pass_) sync_->GradientReady(index);
  });
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
  }
}

void Solver::Solve() {
  if (options_.is_root) {
    log::Info("Solving {}", net_->name());
    log::Info("Learning Rate Policy: {}", param_.lr_policy());
  }
  Step(param_.max_iter() - iteration_);
  const bool just_done = param_.snapshot() > 0 && iteration_ % param_.snapshot() == 0;
  if (options_.is_root && param_.snapshot_after_train() && !just_done) Snapshot();
  if (stopped_) {
    if (options_.is_root) log::Info("Optimization stopped early.");
    return;
  }
  DisplayLastLoss();
  if (param_.test_interval() > 0 && iteration_ % param_.test_interval() == 0) RunTests();
  if (options_.is_root) log::Info("Optimization Done.");
}

void Solver::Step(int iterations) {
  const int stop_at = iteration_ + iterations;
  stopped_ = false;
  display_clock_ = Clock::now();
  display_iteration_ = iteration_;
  while (iteration_ < stop_at && !stopped_) {
    const bool test_is_due = param_.test_interval() > 0 && iteration_ % param_.test_interval() == 0;
    if (test_is_due && (iteration_ > 0 || param_.test_initialization())) RunTests();
    RunIteration();
    SnapshotIfDue();
    stopped_ = stop_requested_.exchange(false);
  }
}

void Solver::RunTests() {
  if (options_.validate) {
    options_.validate(iteration_);
  } else if (options_.is_root) {
    TestAll();
  }
}

void Solver::RunIteration() {
  Gradient gradient = ComputeGradient();
  if (gradient.weight == 0) {
    // All ranks see the same sum, so all of them begin the next epoch here.
    net_->NextEpoch();
    ++epoch_;
    fetches_ = 0;
    gradient = ComputeGradient();
    Require(gradient.weight > 0, ErrorCode::kInvalidArgument,
            "iteration {}: no rows to train on: a whole epoch had none; check the data source",
            iteration_);
  }
  const bool has_rows = gradient.local_weight > 0;
  const auto loss = static_cast<float>(has_rows ? gradient.loss / gradient.local_weight
                                                : std::numeric_limits<double>::quiet_NaN());
  if (has_rows) UpdateSmoothedLoss(loss);
  const float rate = learning_rate_.At(iteration_);
  if (options_.is_root && param_.display() > 0 && iteration_ % param_.display() == 0) Display(rate);
  ApplyUpdate(gradient, rate);
  ++iteration_;
  if (options_.on_iteration) {
    options_.on_iteration({iteration_, loss, smoothed_loss_, rate, gradient.rows});
  }
}

Solver::Gradient Solver::ComputeGradient() {
  Gradient gradient;
  net_->ClearParamDiffs();
  for (int pass = 1; pass <= param_.iter_size(); ++pass) {
    in_last_pass_ = pass == param_.iter_size();
    RunPass(&gradient);
  }
  gradient.weight = sync_->Finish(gradient.local_weight);
  return gradient;
}

void Solver::RunPass(Gradient* gradient) {
  const std::optional<int64_t> rows = net_->Fetch();
  ++fetches_;
  if (rows && *rows == 0) {
    if (!in_last_pass_) return;
    for (size_t i = net_->params().learnable().size(); i-- > 0;) sync_->GradientReady(i);
    return;
  }
  const double weight =
      rows ? static_cast<double>(*rows) / static_cast<double>(net_->batch_size()) : 1.0;
  net_->SetLossScale(static_cast<float>(weight));
  if (options_.before_forward) options_.before_forward(*net_);
  last_loss_ = net_->Forward();
  gradient->loss += weight * last_loss_;
  net_->Backward();
  gradient->local_weight += weight;
  gradient->rows += rows.value_or(0);
}

// The diffs hold the sum over all ranks and passes of gradients that are means over full
// minibatches. Caffe's clipping sees the sum over passes of the mean over ranks.
float Solver::GradientScale(const Gradient& gradient) {
  const double iter_size = param_.iter_size();
  double scale = iter_size / gradient.weight;
  const float limit = param_.clip_gradients();
  if (limit >= 0) {
    const at::Tensor& diff = net_->params().diff();
    const double norm = scale * std::sqrt(SumOfSquares(diff.data_ptr<float>(), diff.numel()));
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

void Solver::ApplyUpdate(const Gradient& gradient, float rate) {
  NetParams& params = net_->params();
  const float scale = GradientScale(gradient);
  float* data = params.data().data_ptr<float>();
  const float* diff = params.diff().data_ptr<float>();
  for (size_t i = 0; i < params.learnable().size(); ++i) {
    const ParamLayout::Slice slice = params.layout().slices[i];
    const LearnableParam& param = params.learnable()[i];
    ParamUpdate update{data + slice.offset,
                       diff + slice.offset,
                       {},
                       slice.count,
                       scale,
                       rate * param.lr_mult,
                       param_.weight_decay() * param.decay_mult};
    for (size_t j = 0; j < history_.size(); ++j) {
      update.history[j] = history_[j].data_ptr<float>() + slice.offset;
    }
    rule_->Apply(update, iteration_);
  }
}

}  // namespace hearth::caffe
