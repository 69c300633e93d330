#include "hearth/trainer/device_trainer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/sha256.h"
#include "hearth/caffe/net/parallel.h"
#include "hearth/caffe/snapshot/snapshot.h"
#include "hearth/trainer/compute_devices.h"
#include "hearth/trainer/crash_report.h"
#include "hearth/trainer/net_source.h"
#include "hearth/trainer/run_events.h"

namespace hearth::trainer {

DeviceTrainer::DeviceTrainer(const Job& job, DeviceOptions options)
    : job_(job), options_(std::move(options)), row_check_(job_, *options_.group, options_.stream) {}

void DeviceTrainer::Run() {
  caffe::SetThreadCount(std::max(1, job_.threads / job_.settings.devices));
  BuildSolver();
  LoadAndBroadcast();
  ShareWeights();
  if (job_.validate) BuildValidator();
  AnnounceStart();
  solver_->Solve();
  JudgeRows(/*no_more=*/true);
  outcome_.iteration = solver_->iteration();
  CheckEqualWeights();
  if (is_root() && !job_.model.empty()) WriteModel();
}

caffe::NetContext DeviceTrainer::Context() const {
  caffe::NetContext context;
  context.device = device_;
  if (job_.settings.algorithms == "fastest") caffe::UseFastestAlgorithms();
  context.share_diffs = true;  // no one reads a blob's diff after backward
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

void DeviceTrainer::BuildSolver() {
  const caffe::SolverParameter solver = SolverOf(job_);
  device_ = ChooseDevice(job_.gpus, solver, options_.group->host_index());
  if (device_.separate) {
    log::Info("Rank {} computes on {}", options_.group->rank(), NameOf(device_));
  }
  sync_ =
      std::make_shared<DistributedSync>(*options_.group, kStepTimeoutSeconds, SyncEvery(),
                                        OpenDevice(*options_.group, device_, kStepTimeoutSeconds));
  caffe::SolverOptions options;
  options.train_context = Context();
  options.train_context.on_invalid_row = [this](const std::string& id, const std::string& reason) {
    if (drawn_again_ >= 0) {
      options_.invalid_rows->Recall(id, reason);
      ++drawn_again_;
      return;
    }
    options_.invalid_rows->Report(id, reason);
    sync_->AddInvalidRow();
  };
  options.train_context.open_source = OpenOnce(options_.rows, "train");
  options.test_context = ForwardContext();
  options.sync = sync_;
  options.is_root = is_root();
  options.solver_file = job_.solver.path;
  options.seed = job_.seed;
  options.rank = static_cast<uint64_t>(options_.group->rank());
  options.ranks = job_.collective_world();
  options.run = job_.run;
  options.shuffles_first_epoch = job_.train && job_.train->files_hash;
  options.stop_on_nan = job_.settings.on_nan == "stop";
  if (job_.validate) options.validate = [this](int iteration) { Validate(iteration); };
  options.complete_position = [this](caffe::TrainingPosition* position) {
    position->notes = outcome_.validations.dump();
    position->datasets = job_.datasets;
    position->counts = counts_;
  };
  options.gather_rows = [this](int64_t epoch) { return row_check_.Gather(epoch, LastRows()); };
  if (options_.signals) {
    options.test_interrupted = [signals = options_.signals] { return signals->StopIsDue(); };
  }
  options.on_iteration = [this](const caffe::IterationReport& report) { OnIteration(report); };
  options.on_test = [this](size_t index, caffe::Net& net, const std::vector<double>& means) {
    options_.send(TestEvent(index, solver_->iteration(), net, means));
  };
  options.on_snapshot = [this](const std::string&, const std::string& state) {
    outcome_.snapshot = state;
  };
  solver_ = std::make_unique<caffe::Solver>(solver, std::move(options));
  sync_->set_averaged([this] {
    std::vector<caffe::Tensor> values = solver_->history();
    values.push_back(solver_->net().params().data());
    return values;
  });
  sync_->set_on_finish([this] { CountRows(); });
  sync_->set_on_stop([this] { solver_->RequestStop(); });
  sync_->set_on_snapshot([this] { solver_->RequestSnapshot(); });
}

// Only rank 0 reads files: other hosts may not have them.
void DeviceTrainer::LoadAndBroadcast() {
  std::string position;
  if (is_root()) {
    if (auto loaded = Load()) {
      TakeNotes(*loaded);
      loaded->notes.clear();  // unused by the other ranks
      position = caffe::PositionToText(*loaded);
    }
  }
  const Deadline deadline = Deadline::After(kStepTimeoutSeconds);
  const auto broadcast = [&](const caffe::Tensor& flat) {
    options_.group->Broadcast(flat.data_ptr(), static_cast<size_t>(flat.numel()) * sizeof(float), 0,
                              deadline);
  };
  broadcast(solver_->net().params().data());
  for (const caffe::Tensor& history : solver_->history()) broadcast(history);
  Broadcast(&position);
  caffe::TrainingPosition start;
  if (!position.empty()) start = caffe::PositionFromText(position);
  if (options_.stream) options_.stream->BeginAt(std::max<int64_t>(0, start.epoch));
  if (position.empty()) return;
  if (!row_check_.Confirm(start) || !IsOfBatchSize(start)) start.fetches = 0;
  ResumeAt(start);
}

void DeviceTrainer::ResumeAt(const caffe::TrainingPosition& position) {
  drawn_again_ = 0;
  const caffe::Skipped skipped = solver_->ResumeAt(position);
  const int64_t bad = std::exchange(drawn_again_, -1);
  int64_t sums[] = {skipped.rows + bad, bad}, minibatches = skipped.minibatches;
  const Deadline deadline = Deadline::After(kStepTimeoutSeconds);
  options_.group->AllReduce(sums, 2, collective::DataType::kInt64, collective::Op::kSum, deadline);
  options_.group->AllReduce(&minibatches, 1, collective::DataType::kInt64, collective::Op::kMax,
                            deadline);
  solver_->WarnIfShort(position, minibatches);
  TakeCounts(position, sums[0], sums[1]);
}

// With another batch size the position refers to other rows.
bool DeviceTrainer::IsOfBatchSize(const caffe::TrainingPosition& position) const {
  const int64_t own = solver_->net().batch_size();
  if (position.batch_size == 0 || position.batch_size == own) return true;
  if (is_root()) {
    log::Warning(
        "The snapshot was made with a batch_size of {}, this run has {}: its epoch begins "
        "again",
        position.batch_size, own);
  }
  return false;
}

// `rows`, `bad`: rows replayed to reach the position in its epoch. They are used where an older
// seal lacks the counts.
void DeviceTrainer::TakeCounts(const caffe::TrainingPosition& position, int64_t rows, int64_t bad) {
  counts_ = position.counts.value_or(caffe::RowCounts{rows, bad, 0, bad});
  const bool at_position = position.ranks == job_.collective_world() && position.fetches > 0;
  if (!at_position) {  // the epoch begins again, including its invalid rows
    counts_.all_bad -= std::min(counts_.all_bad, counts_.bad);
    counts_.rows = counts_.bad = 0;
  }
  if (job_.run.empty() || position.run != job_.run) counts_.all_bad = 0;  // another run's
  options_.invalid_rows->SetCount(counts_.all_bad);
}

// Devices of one process share their weights if only updates change them.
void DeviceTrainer::ShareWeights() {
  if (job_.settings.devices == 1 || SyncEvery() > 1 || !solver_->CanShareWeights()) return;
  collective::Group& team = *options_.team->groups[static_cast<size_t>(options_.device)];
  const auto wait = [&team] { team.Barrier(Deadline::After(kStepTimeoutSeconds)); };
  if (options_.device == 0) options_.team->first = solver_.get();
  wait();
  solver_->ShareWeights(*options_.team->first, options_.device, job_.settings.devices, wait);
  wait();
  if (is_root()) log::Info("The {} devices of a process share its weights", job_.settings.devices);
}

// Restores the validations that this run has done before the snapshot; those of another run are
// dropped.
void DeviceTrainer::TakeNotes(const caffe::TrainingPosition& loaded) {
  if (job_.run.empty() || loaded.run != job_.run || loaded.notes.empty()) return;
  auto notes = nlohmann::json::parse(loaded.notes, nullptr, /*allow_exceptions=*/false);
  if (notes.is_array()) {
    outcome_.validations = std::move(notes);
  } else {
    log::Warning("{}: its field \"notes\" is not a list: earlier validations are lost",
                 loaded.seal);
  }
}

void DeviceTrainer::Broadcast(std::string* text) {
  const Deadline deadline = Deadline::After(kStepTimeoutSeconds);
  uint64_t size = text->size();
  options_.group->Broadcast(&size, sizeof size, 0, deadline);
  text->resize(size);
  if (size > 0) options_.group->Broadcast(text->data(), size, 0, deadline);
}

// A later generation resumes from the last snapshot of its run or, if there is none yet, from
// where the run began.
std::optional<caffe::TrainingPosition> DeviceTrainer::Load() {
  if (job_.generation > 0 && !job_.run.empty()) {
    if (const auto last = caffe::FindSnapshot(solver_->snapshot_prefix(), job_.run)) {
      return solver_->LoadSnapshot(last->state, last->model);
    }
    log::Warning("No snapshot {}_iter_* of this run yet: it starts from the beginning",
                 solver_->snapshot_prefix());
  }
  if (!job_.snapshot.empty()) {
    return solver_->LoadSnapshot(job_.snapshot, job_.weights.empty() ? "" : job_.weights.front());
  }
  if (!job_.weights.empty()) solver_->LoadWeights(fmt::format("{}", fmt::join(job_.weights, ",")));
  return std::nullopt;
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

const dataset::Minibatch& DeviceTrainer::LastRows() const {
  for (const caffe::NetLayer& layer : solver_->net().layers()) {
    if (const dataset::Minibatch* rows = layer.layer->fetched_rows()) return *rows;
  }
  static const dataset::Minibatch kNone;
  return kNone;
}

// A single rank waits for no one.
int DeviceTrainer::SyncEvery() const {
  return options_.group->world() > 1 ? job_.settings.sync_every : 1;
}

int64_t DeviceTrainer::EffectiveBatch() const {
  return std::max<int64_t>(1, solver_->net().batch_size()) * job_.collective_world() *
         solver_->param().iter_size();
}

void DeviceTrainer::AnnounceStart() {
  iteration_ = solver_->iteration();
  SetIterationForCrashes(iteration_);
  progress_.emplace(solver_->iteration(), solver_->param().max_iter(), EffectiveBatch(),
                    Progress::Clock::now());
  times_.emplace(options_.group->rank(), Progress::Clock::now());
  if (options_.device == 0) {
    options_.send({{"event", "ready"}, {"iteration", solver_->iteration()}});
  }
  if (!is_root()) return;
  options_.send(NetEvent(solver_->net()));
  if (solver_->net().batch_size() > 0) {  // else the net's layers produce their rows
    log::Info(
        "Effective batch {} = {} rows x {} devices x {} processes x iter_size {}, lr = {:.6g}",
        EffectiveBatch(), solver_->net().batch_size(), job_.settings.devices, job_.world,
        solver_->param().iter_size(), solver_->learning_rate());
  }
  if (job_.collective_world() > 1)
    log::Info("Ranks communicate by {}", options_.group->description());
  if (SyncEvery() > 1) {
    log::Info("Each rank updates its own weights; averaged every {} iterations", SyncEvery());
  }
  if (validator_) log::Info("Validation has {} rows in total", validator_->total_rows());
}

void DeviceTrainer::Validate(int64_t iteration) {
  // Counted by the iteration, so that a resumed run tests on the same rows as an uninterrupted one.
  const Validator::Result result = validator_->Run(iteration / solver_->param().test_interval());
  counts_.all_bad += result.invalid_rows;
  if (options_.device == 0) options_.invalid_rows->SetCount(counts_.all_bad);
  options_.invalid_rows->Check(result.rows + result.invalid_rows, result.invalid_rows,
                               /*no_more=*/true);
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

// Called after every step, on all ranks with the same numbers; a step without rows ends the epoch.
void DeviceTrainer::CountRows() {
  const double rows = sync_->total_weight() *
                      static_cast<double>(std::max<int64_t>(1, solver_->net().batch_size()));
  counts_.bad += sync_->total_invalid_rows();
  counts_.all_bad += sync_->total_invalid_rows();
  counts_.rows += std::lround(rows) + sync_->total_invalid_rows();
  if (options_.device == 0) options_.invalid_rows->SetCount(counts_.all_bad);
  const bool over = rows == 0;
  if (over) counts_.whole_epoch = counts_.rows;
  JudgeRows(over);
  if (over) counts_.rows = counts_.bad = 0;
}

// Every epoch has the same rows. So after the first one, a later epoch's beginning, which may
// happen to contain its invalid rows, is not checked alone but together with the epochs before it.
void DeviceTrainer::JudgeRows(bool no_more) const {
  const int64_t rows = std::max(counts_.rows, counts_.whole_epoch);
  options_.invalid_rows->Check(rows, counts_.bad, no_more);
  if (no_more && rows > 0 && counts_.bad >= rows) options_.invalid_rows->RejectAllInvalid(rows);
}

void DeviceTrainer::OnIteration(const caffe::IterationReport& report) {
  iteration_ = report.iteration;
  SetIterationForCrashes(report.iteration);
  const bool last = report.iteration >= solver_->param().max_iter();
  const auto times =
      times_->OnIteration({report.rows_wait_s, sync_->wait_s()}, last, Progress::Clock::now());
  if (times) options_.send(*times);
  if (!is_root()) return;
  ObeySignals();
  SendProgress(report);
  const int every = job_.settings.log_histograms;
  if (every == 0 || report.iteration % every != 0) return;
  for (nlohmann::json& event : HistogramEvents(solver_->net(), sync_->gradient_weight())) {
    event["iteration"] = report.iteration;
    options_.send(event);
  }
}

void DeviceTrainer::SendProgress(const caffe::IterationReport& report) {
  // A root that ran out of rows has no loss for the rest of the epoch.
  if (std::isfinite(report.smoothed_loss)) last_loss_ = report.smoothed_loss;
  const double rows = sync_->total_weight() *
                      static_cast<double>(std::max<int64_t>(1, solver_->net().batch_size()));
  auto update = progress_->OnIteration(report.iteration, last_loss_, report.learning_rate, rows,
                                       Progress::Clock::now());
  if (!update) return;
  nlohmann::json event = update->ToJson();
  event["bad_rows"] = counts_.all_bad;
  const bool has_rows = report.rows > 0 || solver_->net().batch_size() == 0;
  if (has_rows) event["outputs"] = OutputsOf(solver_->net());
  options_.send(event);
}

void DeviceTrainer::ObeySignals() {
  const SignalEffect effect = options_.signals ? options_.signals->Take() : SignalEffect::kNone;
  if (effect == SignalEffect::kStop) sync_->RequestStop();
  if (effect != SignalEffect::kSnapshot) return;
  // Snapshots are collective, so ranks learn of them with the next step's gradients.
  if (options_.group->world() == 1) {
    solver_->RequestSnapshot();
  } else {
    sync_->RequestSnapshot();
  }
}

// Ranks whose weights diverge train nonsense without any other sign of it.
void DeviceTrainer::CheckEqualWeights() {
  const caffe::Tensor& data = solver_->net().params().data();
  const std::string_view bytes(reinterpret_cast<const char*>(data.data_ptr()),
                               static_cast<size_t>(data.nbytes()));
  outcome_.weights_sha256 = Sha256Hex(bytes);
  const auto hash =
      static_cast<int64_t>(std::stoull(outcome_.weights_sha256.substr(0, 15), nullptr, 16));
  int64_t largest[] = {hash, ~hash};  // equal on all ranks only if all hashes are equal
  options_.group->AllReduce(largest, 2, collective::DataType::kInt64, collective::Op::kMax,
                            Deadline::After(kStepTimeoutSeconds));
  Require(largest[0] == hash && largest[1] == ~hash, ErrorCode::kInternal,
          "after iteration {} rank {}'s weights differ from those of other ranks",
          iteration_.load(), options_.group->rank());
}

// CaffeOnSpark's rule: the model has the format of the snapshots, as its name says.
void DeviceTrainer::WriteModel() {
  constexpr std::string_view kEnding = ".h5";
  const bool hdf5 = solver_->param().snapshot_format() == caffe::SolverParameter::HDF5;
  outcome_.model = job_.model;
  if (outcome_.model.ends_with(kEnding)) outcome_.model.resize(job_.model.size() - kEnding.size());
  if (hdf5) outcome_.model += kEnding;
  caffe::MakeFolderOf(outcome_.model);
  caffe::WriteModel(solver_->net().ToProto(), outcome_.model);
  log::Info("Model written to {}", outcome_.model);
}

}  // namespace hearth::trainer
