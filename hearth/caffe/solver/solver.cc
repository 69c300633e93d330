#include "hearth/caffe/solver/solver.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/timeline.h"
#include "hearth/caffe/net/debug_info.h"
#include "hearth/caffe/solver/iteration_error.h"
#include "hearth/caffe/solver/solver_nets.h"
#include "hearth/caffe/tensor/device_ops.h"

namespace hearth::caffe {
namespace {

// Returns a random name, which distinguishes the snapshots of different programs with the same
// prefix.
std::string NewRunName() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

// Checks the parameters before the net is built, because building it takes longer.
SolverParameter Checked(SolverParameter param) {
  UpdateRule{param};  // the constructor checks the type and the numbers
  Require(param.iter_size() >= 1 && param.average_loss() >= 1, ErrorCode::kInvalidArgument,
          "the solver's iter_size and average_loss must be at least 1, found {} and {}",
          param.iter_size(), param.average_loss());
  Require(param.max_iter() >= 0 && param.test_interval() >= 0 && param.snapshot() >= 0 &&
              param.display() >= 0,
          ErrorCode::kInvalidArgument,
          "the solver's max_iter, test_interval, snapshot and display must not be negative");
  return param;
}

uint64_t SeedOf(const SolverParameter& param, const SolverOptions& options) {
  return param.random_seed() >= 0 ? static_cast<uint64_t>(param.random_seed()) : options.seed;
}

// Fills in the options that the caller has left unset.
SolverOptions Completed(SolverOptions options, const SolverParameter& param) {
  static SolverObserver no_observer;
  if (!options.observer) options.observer = &no_observer;
  if (!options.sync) options.sync = std::make_shared<LocalSync>();
  if (options.run.empty()) options.run = NewRunName();
  const uint64_t seed = SeedOf(param, options);
  NetContext& context = options.train_context;
  if (!context.random) context.random = std::make_shared<Random>(MixSeed(seed, options.rank));
  context.rank = static_cast<int>(options.rank);
  context.ranks = options.ranks;
  context.seed = options.test_context.seed = seed;
  if (param.debug_info()) context.share_diffs = false;  // debug_info logs every layer's diffs
  return options;
}

}  // namespace

Solver::Solver(SolverParameter param, SolverOptions options)
    : param_(Checked(std::move(param))),
      options_(Completed(std::move(options), param_)),
      seed_(SeedOf(param_, options_)),
      learning_rate_(param_),
      net_(BuildNet(TrainNetOf(param_), options_.train_context, TRAIN, options_.registry)),
      feed_(*net_),
      tests_(param_, options_, MixSeed(seed_, options_.rank + (uint64_t{1} << 32))),
      gradient_(param_, options_, *net_, feed_),
      update_(param_, options_, *net_),
      display_(param_),
      snapshots_(param_, options_.solver_file) {
  for (const std::string& uri : param_.weights()) LoadWeights(uri);
  if (options_.is_root && param_.debug_info()) {
    LogDebugInfo(*net_, [this] { return display_.IsDue(iteration_); });
  }
  if (options_.is_root) snapshots_.Check();
}

void Solver::Solve() {
  if (options_.is_root) {
    log::Info("Solving {}", net_->name());
    log::Info("Learning Rate Policy: {}", param_.lr_policy());
  }
  Step(param_.max_iter() - iteration_);
  // The last iteration may already have written its snapshot.
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
  display_.Start(iteration_);
  while (iteration_ < stop_at_ && !stopped_) {
    // As in Caffe, tests run before the iteration, so that iteration 0 tests the initial weights.
    const bool test_is_due = param_.test_interval() > 0 && iteration_ % param_.test_interval() == 0;
    if (test_is_due && (iteration_ > 0 || param_.test_initialization())) RunTests();
    RunIteration();
    SnapshotIfDue();
    stopped_ = stop_requested_.exchange(false);
  }
}

void Solver::RunTests() {
  if (options_.validates) {
    options_.observer->Validate(iteration_);
  } else if (options_.is_root) {
    TestAll();
  }
}

void Solver::RunIteration() {
  const std::string title =
      timeline::On() ? fmt::format("iteration {}", iteration_ + 1) : std::string();
  const timeline::Span span("solver", title);
  // Each rank and iteration has a separate random stream. A resumed run therefore draws the same
  // numbers, with any number of ranks, without state in the snapshot.
  options_.train_context.random->engine().seed(
      MixSeed(MixSeed(seed_, options_.rank), 1 + static_cast<uint64_t>(iteration_)));
  StepGradient gradient = ComputeGradient();
  if (gradient.all_weight == 0) {
    // all_weight is the same on all ranks, so all of them begin the next epoch here.
    feed_.NextEpoch();
    gradient = ComputeGradient();
    if (gradient.all_weight <= 0) {
      throw IterationError(ErrorCode::kInvalidArgument, iteration_,
                           "no rows to train on: a whole epoch had no rows; check the data source",
                           "");
    }
  }
  const bool has_rows = gradient.local_weight > 0;
  const auto loss = static_cast<float>(has_rows ? gradient.loss / gradient.local_weight
                                                : std::numeric_limits<double>::quiet_NaN());
  if (has_rows) display_.AddLoss(loss);
  // As in Caffe, the loss and the rate of an iteration are logged before its update, with the
  // number of updates so far as the iteration's number.
  const float rate = learning_rate_.At(iteration_);
  if (options_.is_root && display_.IsDue(iteration_)) display_.Log(iteration_, rate, *net_);
  // With periodic averaging, a rank without rows has no gradient in this iteration.
  if (gradient.weight > 0) update_.Apply(iteration_, rate, gradient.weight);
  ++iteration_;
  options_.sync->Updated(WeightsAreShown(), [this] {
    std::vector<Tensor> state = history();
    state.push_back(net_->params().data());
    return state;
  });
  options_.observer->OnIteration(
      {iteration_, loss, display_.smoothed_loss(), rate, gradient.rows, gradient.rows_wait_s});
}

StepGradient Solver::ComputeGradient() {
  const StepGradient gradient = gradient_.Compute(iteration_);
  if (gradient.stop) RequestStop();
  if (gradient.snapshot) RequestSnapshot();
  return gradient;
}

bool Solver::WeightsAreShown() const {
  const auto is_due = [this](int interval) { return interval > 0 && iteration_ % interval == 0; };
  return iteration_ >= stop_at_ || is_due(param_.snapshot()) || is_due(param_.test_interval()) ||
         stop_requested_ || snapshot_requested_;
}

void Solver::DisplayLastLoss() {
  if (!options_.is_root || !display_.IsDue(iteration_)) return;
  // As in Caffe, an additional forward pass computes the loss after the last update, unless the
  // feed has no more rows.
  const std::optional<int64_t> rows = net_->Fetch();
  if (!rows || *rows > 0) {
    // Only the root runs this forward pass, so it must not change statistics that all ranks keep
    // equal.
    Tensor before;
    if (gradient_.averages_statistics()) before = net_->params().data().clone();
    display_.AddLoss(net_->Forward());
    if (before.defined()) net_->params().data().copy_(before);
  }
  log::Info("Iteration {}, loss = {:g}", iteration_, display_.smoothed_loss());
}

void Solver::ApplyUpdate() {
  update_.Apply(iteration_, learning_rate_.At(iteration_), param_.iter_size());
  ++iteration_;
}

void Solver::set_base_lr(float base_lr) {
  param_.set_base_lr(base_lr);
  learning_rate_.set_base_lr(base_lr);
}

// Returns false if layers change their parameters in Forward, because several threads would write
// them at the same time.
bool Solver::CanShareWeights() const {
  const std::vector<NetLayer>& layers = net_->layers();
  const bool writes = std::any_of(layers.begin(), layers.end(), [](const NetLayer& layer) {
    const bool in_forward = layer.traits.keeps_statistics || layer.traits.runs_user_code;
    return in_forward && !layer.layer->blobs().empty();
  });
  return !writes && !options_.train_context.device.separate;
}

void Solver::ShareWeights(Solver& owner, int part, int parts, std::function<void()> wait) {
  if (&owner != this) net_->params().ShareData(owner.net_->params());
  update_.Share(owner.update_, part, parts, std::move(wait));
}

}  // namespace hearth::caffe
