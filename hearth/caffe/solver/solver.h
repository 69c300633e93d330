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

// The training loop of one net, as in Caffe: forward, backward, gradient mean, update, with
// display, tests and snapshots at their intervals. One thread; only the Request functions may be
// called from other threads.
class Solver {
 public:
  // Reads and builds the train net of `param` (net, net_param, train_net, train_net_param) and,
  // unless options.validates is set, its test nets.
  Solver(SolverParameter param, SolverOptions options);
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  // Trains to max_iter: first test, iterations, last snapshot, last display and test. After
  // RequestStop, writes a snapshot and returns at the end of an iteration.
  void Solve();
  // Runs `iterations` more iterations.
  void Step(int iterations);

  // The part of an iteration after its passes, for programs that run forward and backward
  // themselves: updates the weights from the net's diffs, the sum of iter_size passes, and
  // increments the iteration.
  void ApplyUpdate();
  // Changes the base_lr of the learning rate policy.
  void set_base_lr(float base_lr);

  // Returns true if only the update changes the weights, on the CPU, so that solvers can share
  // them.
  bool CanShareWeights() const;
  // Shares weights and history among the solvers of a process's threads, which have the same net
  // and equal values: they use those of `owner`, one of the solvers, and each updates part `part`
  // of `parts`. `wait` must return once all of them have called it; it is called after each update.
  void ShareWeights(Solver& owner, int part, int parts, std::function<void()> wait);

  // Copies weights by layer name from a comma-separated list of .caffemodel files.
  void LoadWeights(const std::string& uris);
  // Resumes from a .solverstate: LoadSnapshot, then ResumeAt.
  void Restore(const std::string& state, const std::string& model = "");
  // Reads weights (`model`, or the state's learned_net) and history. If the files are damaged,
  // reads the previous snapshot and logs a line.
  TrainingPosition LoadSnapshot(const std::string& state, const std::string& model = "");
  // Moves iteration and feed to a position: every rank calls it after one loaded the files.
  Skipped ResumeAt(const TrainingPosition& position);
  // Warns, naming the seal, if all ranks ran out of rows before the position; the next epoch begins
  // there. `minibatches` is the largest number that any rank read.
  void WarnIfShort(const TrainingPosition& position, int64_t minibatches) const;
  // Writes <snapshot_prefix>_iter_<N>.caffemodel and .solverstate, seals them, returns their names.
  std::pair<std::string, std::string> Snapshot();
  // snapshot_prefix, or Caffe's default for it.
  std::string snapshot_prefix() const { return snapshots_.prefix(); }

  void RequestStop() { stop_requested_ = true; }
  // If the observer's GatherRows is collective, request the snapshot on all ranks in the same
  // iteration.
  void RequestSnapshot() { snapshot_requested_ = true; }

  // Runs every test net for its test_iter; logs the outputs' means as Caffe does.
  void TestAll() { tests_.RunAll(iteration_, *net_); }

  const SolverParameter& param() const { return param_; }
  Net& net() { return *net_; }
  const std::vector<std::unique_ptr<Net>>& test_nets() const { return tests_.nets(); }
  int iteration() const { return iteration_; }
  float learning_rate() { return learning_rate_.At(iteration_); }
  float last_loss() const { return gradient_.last_loss(); }  // of the last forward pass
  bool stopped() const { return stopped_; }
  // Flat history buffers in the layout of net().params(), one per history group. Must be made equal
  // on all ranks together with the weights. Valid until the next iteration.
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
  std::vector<SealedRows> rows_;  // of all ranks, for the snapshot being written
  std::atomic<bool> stop_requested_{false}, snapshot_requested_{false};
  bool stopped_ = false;
};

}  // namespace hearth::caffe
