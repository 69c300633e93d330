// Interface of the program that runs a solver: reports to it, and questions to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/snapshot/snapshot_seal.h"

namespace hearth::caffe {

// Results of one iteration, for progress and tests.
struct IterationReport {
  int iteration;        // the one just completed, counted from 1
  float loss;           // mean over this solver's rows; NaN if it had none
  float smoothed_loss;  // over average_loss iterations
  float learning_rate;
  int64_t rows;            // of this solver; 0 if the net is not fed by rows
  double rows_wait_s = 0;  // spent waiting for them
};

// Called from the solver's thread. An exception ends the training.
class SolverObserver {
 public:
  virtual ~SolverObserver() = default;

  // Before every forward pass of the train net: for programs that set the data themselves.
  virtual void BeforeForward(Net& net) {}
  // The gradient of an iteration is complete and, with several ranks, summed. An iteration in which
  // no rank had rows is repeated in the next epoch.
  virtual void OnGradient() {}
  virtual void OnIteration(const IterationReport& report) {}

  // In place of the solver's test nets if SolverOptions.validates: on every solver when a test is
  // due, also before the first iteration if test_initialization is set.
  virtual void Validate(int iteration) {}
  // Before every minibatch of the solver's tests; true interrupts the test.
  virtual bool TestIsInterrupted() { return false; }
  // After each of the solver's tests: index of the net, and the means of its outputs, concatenated.
  virtual void OnTest(size_t index, Net& net, const std::vector<double>& means) {}

  // Returns the rows that every rank has read so far, for a snapshot's seal. Called on every solver
  // when one is due.
  virtual std::vector<SealedRows> GatherRows(int64_t epoch) { return {}; }
  // Adds the program's state to a snapshot's position.
  virtual void CompletePosition(TrainingPosition* position) const {}
  // On the root, with the names of model and state, when a snapshot is complete.
  virtual void OnSnapshot(const std::string& model, const std::string& state) {}
};

}  // namespace hearth::caffe
