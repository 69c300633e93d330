#include "hearth/trainer/step/device_trainer.h"

#include <algorithm>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/tensor/parallel.h"
#include "hearth/trainer/job/crash_report.h"
#include "hearth/trainer/job/run_events.h"
#include "hearth/trainer/job/step_timeout.h"
#include "hearth/trainer/rows/net_source.h"
#include "hearth/trainer/step/compute_devices.h"
#include "hearth/trainer/step/final_weights.h"
#include "hearth/trainer/step/train_start.h"

namespace hearth::trainer {

DeviceTrainer::DeviceTrainer(const Job& job, DeviceOptions options)
    : job_(job),
      options_(std::move(options)),
      row_check_(job_, *options_.group, options_.stream),
      tally_(job_, *options_.invalid_rows, options_.device) {}

void DeviceTrainer::Run() {
  caffe::SetThreadCount(std::max(1, job_.threads / job_.settings.devices));
  // The snapshot is loaded before the devices share weights, because afterwards only device 0's
  // memory is used. The validator is built last, because its net uses the weights of the training
  // net.
  BuildSolver();
  Start();
  ShareWeights();
  if (job_.validate) BuildValidator();
  AnnounceStart();
  solver_->Solve();
  tally_.CheckLimit(/*at_end_of_epoch=*/true);
  outcome_.iteration = solver_->iteration();
  // The weights are compared before the model is written, so that no model is left behind if ranks
  // have diverged.
  outcome_.weights_sha256 = CheckEqualWeights(*options_.group, *solver_);
  if (is_root() && !job_.model.empty()) outcome_.model = WriteFinalModel(job_.model, *solver_);
}

// Returns the number of iterations between averages of the weights. A single rank has no other rank
// with which to average.
int DeviceTrainer::SyncEvery() const {
  return options_.group->world() > 1 ? job_.settings.sync_every : 1;
}

caffe::NetContext DeviceTrainer::Context() const {
  caffe::NetContext context;
  context.device = device_;
  if (job_.settings.algorithms == "fastest") caffe::UseFastestAlgorithms();
  context.share_diffs = true;  // nothing reads a blob's diff after backward
  context.precision = caffe::ParsePrecision(job_.settings.precision);
  context.resize_images = job_.settings.resize;
  context.transform_threads = job_.settings.transform_threads;
  context.on_invalid_row = [invalid_rows = options_.invalid_rows](const std::string& id,
                                                                  const std::string& reason) {
    invalid_rows->Report(id, reason);
  };
  return context;
}

caffe::NetContext DeviceTrainer::ForwardContext() const {
  caffe::NetContext context = Context();
  context.share_data = true;
  return context;
}

caffe::SolverOptions DeviceTrainer::Options() {
  caffe::SolverOptions options;
  options.train_context = Context();
  options.train_context.on_invalid_row = [this](const std::string& id, const std::string& reason) {
    if (tally_.Report(id, reason)) sync_->AddInvalidRow();
  };
  options.train_context.open_source = OpenOnce(options_.rows, "train");
  options.test_context = ForwardContext();
  options.sync = sync_;
  options.observer = this;
  options.is_root = is_root();
  options.solver_file = job_.solver.path;
  options.seed = job_.seed;
  options.rank = static_cast<uint64_t>(options_.group->rank());
  options.ranks = job_.collective_world();
  options.run = job_.run;
  options.shuffles_first_epoch = job_.train && job_.train->files_hash;
  options.stop_on_nan = job_.settings.on_nan == "stop";
  options.validates = job_.validate;
  return options;
}

void DeviceTrainer::BuildSolver() {
  const caffe::SolverParameter solver = SolverOf(job_);
  device_ = ChooseDevice(job_.gpus, solver, options_.group->host_index());
  if (device_.separate) {
    log::Info("Rank {} computes on {}", options_.group->rank(), NameOf(device_));
  }
  sync_ = MakeDistributedSync(*options_.group, kStepTimeoutSeconds, SyncEvery(),
                              OpenDevice(*options_.group, device_, kStepTimeoutSeconds));
  solver_ = std::make_unique<caffe::Solver>(solver, Options());
}

void DeviceTrainer::Start() {
  TrainStart start(job_, *options_.group, *solver_);
  auto position = start.Load(&outcome_.validations);
  if (options_.stream) {
    options_.stream->BeginAt(position ? std::max<int64_t>(0, position->epoch) : 0);
  }
  if (!position) return;
  if (!row_check_.RowsMatch(*position) || !start.IsOfBatchSize(*position)) position->fetches = 0;
  start.MoveTo(*position, &tally_);
}

// Devices of one process share their weights if only the solver's updates change them.
void DeviceTrainer::ShareWeights() {
  if (job_.settings.devices == 1 || SyncEvery() > 1 || !solver_->CanShareWeights()) return;
  collective::Group& team = *options_.team->groups[static_cast<size_t>(options_.device)];
  const auto wait = [&team] { team.Barrier(Deadline::After(kStepTimeoutSeconds)); };
  if (options_.device == 0) options_.team->first = solver_.get();
  // The first wait ensures that `first` is set before another device reads it, the second one that
  // no device trains before all share the weights.
  wait();
  solver_->ShareWeights(*options_.team->first, options_.device, job_.settings.devices, wait);
  wait();
  if (is_root()) log::Info("The {} devices of a process share its weights", job_.settings.devices);
}

void DeviceTrainer::BuildValidator() {
  Validator::Options options;
  options.net = TestNetOf(job_);
  options.context = ForwardContext();
  options.rows = options_.validation_rows;
  options.test_iter = solver_->param().test_iter_size() > 0 ? solver_->param().test_iter(0) : 0;
  options.timeout_s = kStepTimeoutSeconds;
  validator_ = std::make_unique<Validator>(*options_.group, solver_->net(), std::move(options));
}

void DeviceTrainer::AnnounceStart() {
  iteration_ = solver_->iteration();
  SetIterationForCrashes(iteration_);
  reports_.emplace(job_, options_.group->rank(), *solver_, *sync_, options_.send);
  if (options_.device == 0) {
    options_.send({{"event", "ready"}, {"iteration", solver_->iteration()}});
  }
  if (!is_root()) return;
  options_.send(NetEvent(solver_->net()));
  if (solver_->net().batch_size() > 0) {  // 0 if the net's layers produce their rows
    log::Info(
        "Effective batch {} = {} rows x {} devices x {} processes x iter_size {}, lr = {:.6g}",
        reports_->effective_batch(), solver_->net().batch_size(), job_.settings.devices, job_.world,
        solver_->param().iter_size(), solver_->learning_rate());
  }
  if (job_.collective_world() > 1)
    log::Info("Ranks communicate by {}", options_.group->description());
  if (SyncEvery() > 1) {
    log::Info("Each rank updates its own weights; averaged every {} iterations", SyncEvery());
  }
  if (validator_) log::Info("Validation has {} rows in total", validator_->total_rows());
}

void DeviceTrainer::OnGradient() {
  // All ranks have the same sums here, so if too many rows are invalid, all throw in the same step.
  tally_.AddStep(RowsOfStep(*sync_, solver_->net()), sync_->total_invalid_rows());
}

void DeviceTrainer::OnIteration(const caffe::IterationReport& report) {
  iteration_ = report.iteration;
  SetIterationForCrashes(report.iteration);
  reports_->OnIteration(report, tally_.counts().all_bad);
  if (is_root()) HandleSignals();
}

void DeviceTrainer::HandleSignals() {
  const SignalEffect effect = options_.signals ? options_.signals->Take() : SignalEffect::kNone;
  if (effect == SignalEffect::kStop) sync_->RequestStop();
  if (effect != SignalEffect::kSnapshot) return;
  // Snapshots are collective, so the request is sent to all ranks with the next step's gradients.
  if (options_.group->world() == 1) {
    solver_->RequestSnapshot();
  } else {
    sync_->RequestSnapshot();
  }
}

void DeviceTrainer::Validate(int iteration) {
  // The validation's number follows from the iteration, so that a resumed run tests on the same
  // rows as an uninterrupted one.
  const Validator::Result result = validator_->Run(iteration / solver_->param().test_interval());
  tally_.AddValidation(result.invalid_rows);
  options_.invalid_rows->Check(result.rows + result.invalid_rows, result.invalid_rows,
                               /*at_end_of_epoch=*/true);
  Require(result.rows > 0 || result.invalid_rows == 0, ErrorCode::kDataLoss,
          "validation after iteration {}: all of its {} rows are invalid", iteration,
          result.invalid_rows);
  if (!is_root()) return;
  validator_->Log(iteration, result);
  nlohmann::json validation = {{"iteration", iteration}, {"outputs", result.ToJson()}};
  outcome_.validations.push_back(validation);
  validation["event"] = "validation";
  options_.send(validation);
}

bool DeviceTrainer::TestIsInterrupted() {
  return options_.signals && options_.signals->StopIsDue();
}

void DeviceTrainer::OnTest(size_t index, caffe::Net& net, const std::vector<double>& means) {
  options_.send(TestEvent(index, solver_->iteration(), net, means));
}

std::vector<caffe::SealedRows> DeviceTrainer::GatherRows(int64_t epoch) {
  return row_check_.Gather(epoch, LastRows(solver_->net()));
}

void DeviceTrainer::CompletePosition(caffe::TrainingPosition* position) const {
  position->notes = outcome_.validations.dump();
  position->datasets = job_.datasets;
  position->counts = tally_.counts();
}

void DeviceTrainer::OnSnapshot(const std::string&, const std::string& state) {
  outcome_.snapshot = state;
}

}  // namespace hearth::trainer
