// One solver of a training: a device thread's net, solver and rank.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hearth/caffe/solver/solver.h"
#include "hearth/collective/group.h"
#include "hearth/dataset/spool/minibatch.h"
#include "hearth/dataset/spool/row_stream.h"
#include "hearth/dataset/spool/spool.h"
#include "hearth/trainer/job/job.h"
#include "hearth/trainer/job/signal_effects.h"
#include "hearth/trainer/rows/invalid_rows.h"
#include "hearth/trainer/rows/row_check.h"
#include "hearth/trainer/rows/row_tally.h"
#include "hearth/trainer/step/distributed_sync.h"
#include "hearth/trainer/step/step_reports.h"
#include "hearth/trainer/step/validator.h"

namespace hearth::trainer {

// State that the device threads of one process share.
struct DeviceTeam {
  std::vector<std::unique_ptr<collective::Group>> groups;  // of this process, one per thread
  caffe::Solver* first = nullptr;                          // solver of device 0, once it is built
};

// Options of DeviceTrainer. The pointers must stay valid as long as the trainer exists.
struct DeviceOptions {
  int device = 0;  // index in this process
  DeviceTeam* team = nullptr;
  collective::Group* group = nullptr;
  std::shared_ptr<dataset::MinibatchSource> rows;
  std::shared_ptr<dataset::RowStream> stream;       // source of this process's rows, if any
  std::shared_ptr<dataset::Spool> validation_rows;  // set for one device of each process
  InvalidRows* invalid_rows = nullptr;
  SignalEffects* signals = nullptr;  // may be null
  std::function<void(const nlohmann::json&)> send;
};

// Results of a finished training.
struct TrainOutcome {
  int64_t iteration = 0;
  // [{iteration, outputs}], including those before the snapshot that the run resumed from.
  nlohmann::json validations = nlohmann::json::array();
  std::string model;     // the final model; empty if none was requested
  std::string snapshot;  // the last .solverstate; empty if there is none
  std::string weights_sha256;
};

// The net, solver and rank of one device. Used only by the device's thread, except for iteration().
class DeviceTrainer final : private caffe::SolverObserver {
 public:
  DeviceTrainer(const Job& job, DeviceOptions options);

  // Builds the net, copies rank 0's weights, trains to the end, and checks that all ranks ended
  // with bit-identical weights. Waits for other ranks for at most kStepTimeoutSeconds at a time.
  // Throws the first failure, for example an error of Group::Run.
  void Run();

  // The last finished iteration, or -1 before the first one. Any thread may call it.
  int64_t iteration() const { return iteration_; }
  const TrainOutcome& outcome() const { return outcome_; }

 private:
  void OnGradient() override;
  void OnIteration(const caffe::IterationReport& report) override;
  void Validate(int iteration) override;
  bool TestIsInterrupted() override;
  void OnTest(size_t index, caffe::Net& net, const std::vector<double>& means) override;
  std::vector<caffe::SealedRows> GatherRows(int64_t epoch) override;
  void CompletePosition(caffe::TrainingPosition* position) const override;
  void OnSnapshot(const std::string& model, const std::string& state) override;

  bool is_root() const { return options_.group->rank() == 0; }
  int SyncEvery() const;
  caffe::NetContext Context() const;
  caffe::NetContext ForwardContext() const;  // for nets that only run forward
  caffe::SolverOptions Options();
  void BuildSolver();
  void Start();
  void ShareWeights();
  void BuildValidator();
  void AnnounceStart();
  void HandleSignals();

  const Job& job_;
  const DeviceOptions options_;
  RowCheck row_check_;
  RowTally tally_;
  caffe::ComputeDevice device_;
  std::shared_ptr<DistributedSync> sync_;
  std::unique_ptr<caffe::Solver> solver_;
  std::unique_ptr<Validator> validator_;
  std::optional<StepReports> reports_;
  std::atomic<int64_t> iteration_{-1};
  TrainOutcome outcome_;
};

}  // namespace hearth::trainer
