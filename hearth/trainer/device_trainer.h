// One solver of a training: a device thread's net, solver and rank.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "hearth/caffe/solver/solver.h"
#include "hearth/collective/group.h"
#include "hearth/dataset/minibatch.h"
#include "hearth/dataset/row_stream.h"
#include "hearth/dataset/spool.h"
#include "hearth/trainer/distributed_sync.h"
#include "hearth/trainer/invalid_rows.h"
#include "hearth/trainer/job.h"
#include "hearth/trainer/progress.h"
#include "hearth/trainer/row_check.h"
#include "hearth/trainer/signal_effects.h"
#include "hearth/trainer/step_times.h"
#include "hearth/trainer/validator.h"

namespace hearth::trainer {

// Time that a rank may be behind the others: enough for a validation, or for rows that Spark still
// computes. A lost rank is reported much sooner, by the rendezvous' heartbeat.
inline constexpr double kStepTimeoutSeconds = 3600;

// Shared by the device threads of one process.
struct DeviceTeam {
  std::vector<std::unique_ptr<collective::Group>> groups;  // of these threads alone, one per thread
  caffe::Solver* first = nullptr;                          // device 0's, once it is built
};

struct DeviceOptions {
  int device = 0;  // of this process
  DeviceTeam* team = nullptr;
  collective::Group* group = nullptr;
  std::shared_ptr<dataset::MinibatchSource> rows;
  std::shared_ptr<dataset::RowStream> stream;       // source of this process's rows, if any
  std::shared_ptr<dataset::Spool> validation_rows;  // set for one device of each process
  InvalidRows* invalid_rows = nullptr;
  SignalEffects* signals = nullptr;  // may be null
  std::function<void(const nlohmann::json&)> send;
};

struct TrainOutcome {
  int64_t iteration = 0;
  // [{iteration, outputs}], including those before the snapshot that the run resumed from.
  nlohmann::json validations = nlohmann::json::array();
  std::string model;     // the final model; empty if none was requested
  std::string snapshot;  // the last .solverstate; empty if there is none
  std::string weights_sha256;
};

// Everything but iteration() belongs to the device's thread.
class DeviceTrainer {
 public:
  DeviceTrainer(const Job& job, DeviceOptions options);

  // Builds the net, copies rank 0's weights, trains to the end, and checks that all ranks ended
  // with the same bits. Throws the first failure.
  void Run();

  // The last finished iteration, -1 before the first; any thread.
  int64_t iteration() const { return iteration_; }
  const TrainOutcome& outcome() const { return outcome_; }

 private:
  bool is_root() const { return options_.group->rank() == 0; }
  caffe::NetContext Context() const;
  caffe::NetContext ForwardContext() const;  // of nets that only run forward
  void BuildSolver();
  void LoadAndBroadcast();
  void ShareWeights();
  std::optional<caffe::TrainingPosition> Load();
  void TakeNotes(const caffe::TrainingPosition& loaded);
  void Broadcast(std::string* text);
  void BuildValidator();
  void AnnounceStart();
  void Validate(int64_t iteration);
  void ResumeAt(const caffe::TrainingPosition& position);
  bool IsOfBatchSize(const caffe::TrainingPosition& position) const;
  void TakeCounts(const caffe::TrainingPosition& position, int64_t rows, int64_t bad);
  void CountRows();
  void JudgeRows(bool no_more) const;
  void OnIteration(const caffe::IterationReport& report);
  void SendProgress(const caffe::IterationReport& report);
  void ObeySignals();
  void CheckEqualWeights();
  void WriteModel();
  int SyncEvery() const;
  int64_t EffectiveBatch() const;
  const dataset::Minibatch& LastRows() const;

  const Job& job_;
  const DeviceOptions options_;
  RowCheck row_check_;
  caffe::ComputeDevice device_;
  std::shared_ptr<DistributedSync> sync_;
  std::unique_ptr<caffe::Solver> solver_;
  std::unique_ptr<Validator> validator_;
  std::optional<Progress> progress_;
  std::optional<StepTimes> times_;
  float last_loss_ = 0;
  caffe::RowCounts counts_;  // of all ranks
  // Invalid rows replayed while the feed skips to a position, which are counted already. -1: not
  // skipping.
  int64_t drawn_again_ = -1;
  std::atomic<int64_t> iteration_{-1};
  TrainOutcome outcome_;
};

}  // namespace hearth::trainer
