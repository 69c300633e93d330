// For tests: trainings whose processes are threads of the test, and comparisons of their results.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hearth/base/hmac.h"
#include "hearth/base/thread.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/trainer/job/job.h"
#include "hearth/trainer/testing/trainer_testing.h"

namespace hearth::trainer {

using Batches = std::vector<std::vector<int64_t>>;

// A training to run.
struct Training {
  int processes = 1;
  int devices = 1;
  int batch_size = 12;
  int max_iter = 20;
  std::string solver;                // fields added to TestSolver
  std::string net;                   // net's prototxt; empty: TestNet
  bool hdf5 = false;                 // the format of model and snapshots
  std::vector<Batches> train, test;  // rows per process; without `test`, there is no validation
  bool streamed = false;             // feeders send the training rows again in each epoch
  std::string snapshot;              // .solverstate to resume from
  std::string run;
  std::string datasets;
  uint64_t generation = 0;
  std::string on_other_rows = "restartEpoch";
  int sync_every = 1;
};

// Results of a training.
struct Trained {
  caffe::NetParameter model;
  caffe::SolverState state;
  std::vector<nlohmann::json> events;  // events of process 0
  std::vector<std::string> hashes;     // hashes of the weights, per process
};

// Fixture that runs trainings.
class TrainSessionFixture : public ::testing::Test {
 protected:
  // Throws the first failure of any process.
  Trained Train(const Training& training);
  // Starts the next generation of the same run, as the driver does after a failure.
  Trained TrainAgain(Training training) {
    ++training.generation;
    return Train(training);
  }

  TestFolder folder_;

 private:
  Job JobOf(const Training& training, int rank, int port);

  const std::string token_ = NewToken();
};

// Expects weights and history to be equal within `tolerance`, which is relative for values above 1.
void ExpectSameTraining(const Trained& a, const Trained& b, float tolerance = 1e-5f);
// The largest difference between two weights.
float LargestDifference(const Trained& a, const Trained& b);

// Distributes rows over the processes so that iteration k of the whole job trains on rows [k *
// rows, (k + 1) * rows).
std::vector<Batches> Split(int processes, int iterations, int rows);

std::vector<nlohmann::json> ValidationsIn(const Trained& trained);

}  // namespace hearth::trainer
