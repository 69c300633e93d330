// Interface with which a solver reports its progress to the program that runs it, and queries it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/snapshot/snapshot_seal.h"

namespace hearth::caffe {

// Results of one iteration, for progress displays and tests.
struct IterationReport {
  int iteration;        // number of the completed iteration, counted from 1
  float loss;           // mean over this solver's rows; NaN if it had none
  float smoothed_loss;  // mean over average_loss iterations
  float learning_rate;
  int64_t rows;            // read by this solver; 0 if the net is not fed by rows
  double rows_wait_s = 0;  // time spent waiting for the rows
};

// Functions that a program may override to observe its solver. The solver calls them from its
// thread; an exception ends the training.
class SolverObserver {
 public:
  virtual ~SolverObserver() = default;

  // Called before every forward pass of the train net, for programs that set the data themselves.
  virtual void BeforeForward(Net& net) {}
  // Called when the gradient of an iteration is complete and, with several ranks, summed. An
  // iteration in which no rank had rows is repeated in the next epoch.
  virtual void OnGradient() {}
  virtual void OnIteration(const IterationReport& report) {}

  // Replaces the solver's test nets if SolverOptions.validates is set. Called on every solver when
  // a test is due; before the first iteration, only if test_initialization is set.
  virtual void Validate(int iteration) {}
  // Called before every minibatch of the solver's tests. Returns true to interrupt the test.
  virtual bool TestIsInterrupted() { return false; }
  // Called after each of the solver's tests, with the index of the net and the means of its
  // outputs, concatenated.
  virtual void OnTest(size_t index, Net& net, const std::vector<double>& means) {}

  // Returns the rows that every rank has read so far, for a snapshot's seal. Called on every solver
  // when a snapshot is due.
  virtual std::vector<SealedRows> GatherRows(int64_t epoch) { return {}; }
  // Adds the program's state to a snapshot's position.
  virtual void CompletePosition(TrainingPosition* position) const {}
  // Called on the root when a snapshot is complete, with the names of model and state.
  virtual void OnSnapshot(const std::string& model, const std::string& state) {}
};

}  // namespace hearth::caffe
