#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/snapshot/snapshot_seal.h"
#include "hearth/caffe/solver/gradient_step.h"
#include "hearth/caffe/solver/learning_rate.h"
#include "hearth/caffe/solver/row_cursor.h"
#include "hearth/caffe/solver/snapshot_writer.h"
#include "hearth/caffe/solver/solver_options.h"
#include "hearth/caffe/solver/test_nets.h"
#include "hearth/caffe/solver/train_display.h"
#include "hearth/caffe/solver/weight_update.h"

namespace hearth::caffe {

// The training loop of one net, as in Caffe: forward, backward, mean of the gradients, update;
// display, tests and snapshots at their intervals. Not thread-safe, except for the Request
// functions.
class Solver {
 public:
  // Reads and builds the train net of `param` (net, net_param, train_net, train_net_param) and,
  // unless options.validates is set, its test nets.
  Solver(SolverParameter param, SolverOptions options);
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  // Trains to max_iter: runs the first test and all iterations, then the last snapshot, display and
  // test. After RequestStop, writes a snapshot and returns at the end of an iteration.
  void Solve();
  // Runs `iterations` more iterations.
  void Step(int iterations);

  // For programs that run forward and backward themselves: completes the iteration. Updates the
  // weights from the net's diffs, which contain the sum of iter_size passes, and increments the
  // iteration.
  void ApplyUpdate();
  // Changes the base_lr of the learning rate policy.
  void set_base_lr(float base_lr);

  // Returns true if several solvers can share these weights: the weights are on the CPU, and only
  // the update changes them.
  bool CanShareWeights() const;
  // Shares weights and history among solvers on several threads of a process. The solvers must have
  // the same net and equal values. All use the memory of `owner`, one of the solvers, and each
  // updates part `part` of `parts`. `wait` is called after each update and must block until all
  // solvers have called it.
  void ShareWeights(Solver& owner, int part, int parts, std::function<void()> wait);

  // Copies weights by layer name from a comma-separated list of .caffemodel files.
  void LoadWeights(const std::string& uris);
  // Resumes from a .solverstate: LoadSnapshot(), then ResumeAt().
  void Restore(const std::string& state, const std::string& model = "");
  // Reads the weights (from `model`, or the state's learned_net) and the history. If the files are
  // damaged, logs a line and reads the previous snapshot.
  TrainingPosition LoadSnapshot(const std::string& state, const std::string& model = "");
  // Moves the iteration and the feed to a position. One rank loads the files, then every rank calls
  // this.
  Skipped ResumeAt(const TrainingPosition& position);
  // Warns, naming the seal, if all ranks ran out of rows before the position, so that the next
  // epoch begins there. `minibatches` is the largest number that any rank read.
  void WarnIfShort(const TrainingPosition& position, int64_t minibatches) const;
  // Writes <snapshot_prefix>_iter_<N>.caffemodel and .solverstate, seals them, and returns their
  // names.
  std::pair<std::string, std::string> Snapshot();
  // Returns snapshot_prefix or, if it is not set, Caffe's default.
  std::string snapshot_prefix() const { return snapshots_.prefix(); }

  void RequestStop() { stop_requested_ = true; }
  // If the observer's GatherRows is collective, request the snapshot on all ranks in the same
  // iteration.
  void RequestSnapshot() { snapshot_requested_ = true; }

  // Runs every test net for its test_iter, and logs the means of the outputs as Caffe does.
  void TestAll() { tests_.RunAll(iteration_, *net_); }

  const SolverParameter& param() const { return param_; }
  Net& net() { return *net_; }
  const std::vector<std::unique_ptr<Net>>& test_nets() const { return tests_.nets(); }
  int iteration() const { return iteration_; }
  float learning_rate() { return learning_rate_.At(iteration_); }
  float last_loss() const { return gradient_.last_loss(); }  // of the last forward pass
  bool stopped() const { return stopped_; }
  // Flat history buffers in the layout of net().params(), one per history group. A caller that
  // makes the weights equal on all ranks must make these equal, too. Valid until the next
  // iteration.
  std::vector<Tensor> history() { return update_.history(); }

 private:
  void RunTests();
  void RunIteration();
  StepGradient ComputeGradient();
  bool WeightsAreShown() const;
  void DisplayLastLoss();
  void SnapshotIfDue();
  void SnapshotOnRoot();
  TrainingPosition Position() const;

  SolverParameter param_;
  const SolverOptions options_;
  const uint64_t seed_;
  LearningRate learning_rate_;
  const std::unique_ptr<Net> net_;
  RowCursor feed_;
  TestNets tests_;
  GradientStep gradient_;
  WeightUpdate update_;
  TrainDisplay display_;
  const SnapshotWriter snapshots_;

  int iteration_ = 0, stop_at_ = 0;
  std::vector<SealedRows> rows_;  // rows read by all ranks, for the snapshot being written
  std::atomic<bool> stop_requested_{false}, snapshot_requested_{false};
  bool stopped_ = false;
};

}  // namespace hearth::caffe
