// Trains with many more ranks than cores.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "hearth/trainer/testing/train_session_testing.h"

namespace hearth::trainer {
namespace {

class LoadTest : public TrainSessionFixture {};

// Runs the ranks of eight processes with eight devices each as threads of this test.
TEST_F(LoadTest, SixtyFourRanksTrainAHundredIterations) {
  const int processes = 8, devices = 8, batch_size = 2, iterations = 100;
  const int rows = processes * devices * batch_size;
  Training training;
  training.processes = processes;
  training.devices = devices;
  training.batch_size = batch_size;
  training.max_iter = iterations;
  training.train = Split(processes, 10, rows);  // ten epochs
  const auto start = std::chrono::steady_clock::now();
  const Trained trained = Train(training);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("64 ranks, 100 iterations: %.1f s\n", took.count());
  EXPECT_EQ(trained.state.iter(), iterations);
  EXPECT_EQ(std::count(trained.hashes.begin(), trained.hashes.end(), trained.hashes[0]), processes);
  ASSERT_FALSE(trained.events.empty());
  EXPECT_EQ(trained.events.back()["event"], "done");
}

}  // namespace
}  // namespace hearth::trainer
