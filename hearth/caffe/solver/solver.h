// The training loop of one net, as in Caffe: forward, backward, gradient mean, update, with
// display, tests and snapshots at their intervals. One thread; only the Request functions may be
// called from other threads.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/snapshot/snapshot_seal.h"
#include "hearth/caffe/solver/gradient_sync.h"
#include "hearth/caffe/solver/learning_rate.h"
#include "hearth/caffe/solver/update_rule.h"

namespace hearth::caffe {

// Results of one iteration, for progress and tests.
struct IterationReport {
  int iteration;        // the one just completed, counted from 1
  float loss;           // mean over this solver's rows; NaN if it had none
  float smoothed_loss;  // over average_loss iterations
  float learning_rate;
  int64_t rows;            // of this solver; 0 if the net is not fed by rows
  double rows_wait_s = 0;  // time that it waited for them
};

struct SolverOptions {
  NetContext train_context;  // the solver sets phase and, from the seed, a missing `random`
  NetContext test_context;   // for the solver's test nets
  std::shared_ptr<GradientSync> sync;  // empty: LocalSync
  // path of the prototxt: determines the default snapshot_prefix
  std::string solver_file;
  bool is_root = true;  // logs, tests, writes snapshots; false on all but one of several solvers
  uint64_t seed = 0;    // used if the prototxt has no random_seed
  uint64_t rank = 0;    // mixed into the seed: augmentation and dropout differ by rank
  // number of ranks that share the sync; a snapshot's feed position holds only for it
  int ranks = 1;
  // distinguishes the snapshots of runs with the same prefix; empty: a new name
  std::string run;
  bool shuffles_first_epoch = false;  // by the seed; otherwise only later epochs are shuffled
  bool stop_on_nan = false;           // a non-finite loss is an error; otherwise a warning
  // Replaces the solver's test nets: called on every solver when a test is due, also before the
  // first iteration if test_initialization is set.
  std::function<void(int iteration)> validate;
  // Adds the trainer's state to a snapshot's position.
  std::function<void(TrainingPosition*)> complete_position;
  // Returns the rows that every rank has read so far, for a snapshot's seal. Called on every solver
  // when one is due.
  std::function<std::vector<SealedRows>(int64_t epoch)> gather_rows;
  // Called before every minibatch of the solver's tests; true interrupts the test.
  std::function<bool()> test_interrupted;
  std::function<void(const IterationReport&)> on_iteration;
  // Called after each of the solver's tests: index of the net, and the means of its outputs,
  // concatenated.
  std::function<void(size_t index, Net& net, const std::vector<double>& means)> on_test;
  // Called before every forward pass of the train net: for programs that set the data themselves.
  std::function<void(Net& net)> before_forward;
  // Called on the root with the names of model and state when a snapshot is complete.
  std::function<void(const std::string& model, const std::string& state)> on_snapshot;
  const LayerRegistry* registry = nullptr;  // null: LayerRegistry::Default()
};

// Rows replayed to reach a position.
struct Skipped {
  int64_t rows = 0, minibatches = 0;
};

class Solver {
 public:
  // Reads and builds the train net of `param` (net, net_param, train_net, train_net_param) and,
  // unless options.validate is set, its test nets.
  Solver(SolverParameter param, SolverOptions options);
  ~Solver();
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
  std::string snapshot_prefix() const;

  void RequestStop() { stop_requested_ = true; }
  // If gather_rows is collective, request the snapshot on all ranks in the same iteration.
  void RequestSnapshot() { snapshot_requested_ = true; }

  // Runs every test net for its test_iter; logs the outputs' means as Caffe does.
  void TestAll();

  const SolverParameter& param() const { return param_; }
  Net& net() { return *net_; }
  const std::vector<std::unique_ptr<Net>>& test_nets() const { return test_nets_; }
  int iteration() const { return iteration_; }
  float learning_rate() { return learning_rate_.At(iteration_); }
  float last_loss() const { return last_loss_; }  // of the last forward pass
  bool stopped() const { return stopped_; }
  // Flat history buffers in the layout of net().params(), one per history group. Must be made equal
  // on all ranks together with the weights. Valid until the next iteration.
  std::vector<Tensor> history();

 private:
  using Clock = std::chrono::steady_clock;

  struct Gradient {
    double weight = 0;      // minibatches behind it: of all ranks once it is summed
    double all_weight = 0;  // of all ranks
    double loss = 0;        // sum of loss * weight of the local passes
    double local_weight = 0;
    int64_t rows = 0;
    double rows_wait_s = 0;
  };

  void BuildTestNets(uint64_t seed);
  void RunTests();
  void Test(size_t index);
  void RunIteration();
  void ComputeGradient();
  void RunPass();
  void CheckLoss();
  void FindStatistics();
  void ReportGradient(size_t index);
  void TakeStatistics();
  float GradientScale();
  void ApplyUpdate(float rate);
  bool WeightsAreShown() const;
  double GradientNorm();
  void AddToUpdate(size_t index, TensorUpdate* update);
  void UpdateOnHost(size_t index, const ParamUpdate& rates);
  void UpdateSmoothedLoss(float loss);
  bool DisplayIsDue() const;
  void Display(float rate);
  void DisplayLastLoss();
  void SnapshotIfDue();
  void SnapshotOnRoot();
  void CheckSnapshotPrefix() const;
  SolverState MakeState(const std::string& model);
  TrainingPosition Position() const;
  void RestoreHistory(const SolverState& state, const std::string& uri);
  Skipped SkipToFeedPosition(int64_t epoch, int64_t fetches);

  SolverParameter param_;
  SolverOptions options_;
  std::shared_ptr<GradientSync> sync_;
  std::shared_ptr<Random> random_;  // of the train net
  std::unique_ptr<Net> net_;
  std::vector<std::unique_ptr<Net>> test_nets_;
  LearningRate learning_rate_;
  std::unique_ptr<UpdateRule> rule_;
  std::vector<Blob> history_;
  bool reduced_on_device_ = false;  // gradients are reduced by sync_ on the device
  // The part of the flat buffers that this solver updates, and the barrier after the update.
  int64_t update_begin_ = 0, update_end_ = 0;
  std::function<void()> wait_for_update_;

  uint64_t seed_ = 0;
  std::vector<size_t> statistics_;  // learnable parameters that ranks average: BatchNorm's

  int iteration_ = 0, stop_at_ = 0;
  int64_t epoch_ = 0,
          fetches_ = 0;           // position in the feed: fetches in this epoch
  std::vector<SealedRows> rows_;  // of all ranks, for the snapshot being written
  Gradient gradient_;             // of the current iteration
  bool in_last_pass_ = false;     // of iter_size: gradients become final
  bool loss_is_finite_ = true;
  std::deque<float> losses_;
  float smoothed_loss_ = 0, last_loss_ = 0;
  std::atomic<bool> stop_requested_{false}, snapshot_requested_{false};
  bool stopped_ = false;
  Clock::time_point display_clock_;
  int display_iteration_ = 0;
};

}  // namespace hearth::caffe
