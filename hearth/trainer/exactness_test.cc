// Tests that training on many ranks gives the same result as on one process with the whole batch,
// and is reproducible.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <set>

#include "hearth/trainer/testing/train_session_testing.h"

namespace hearth::trainer {
namespace {

using ExactnessTest = TrainSessionFixture;

void ExpectOneHash(const Trained& trained) {
  const std::set<std::string> hashes(trained.hashes.begin(), trained.hashes.end());
  EXPECT_EQ(hashes.size(), 1u) << "ranks ended with different weights";
  EXPECT_EQ(hashes.begin()->size(), 64u);
}

// TestNet with another layer after ip1.
std::string NetWith(int batch_size, const std::string& type, const std::string& more) {
  std::string net = TestNet(batch_size);
  const size_t position = net.find("layer { name: \"relu1\"");
  return net.insert(position, fmt::format("layer {{ name: \"extra\" type: \"{}\" bottom: \"ip1\" "
                                          "top: \"ip1\" {} }}\n",
                                          type, more));
}

class Solvers : public TrainSessionFixture, public ::testing::WithParamInterface<const char*> {};

// Momentum, decay and clipping are set in TestSolver.
TEST_P(Solvers, RanksAndDevicesEqualOneProcessWithTheWholeBatch) {
  const int rows = 24;  // per iteration: iter_size 2 with a total batch of 12
  Training one;
  one.solver = std::string("iter_size: 2 ") + GetParam();
  one.train = Split(1, one.max_iter, rows);
  const Trained alone = Train(one);
  for (const auto& [processes, devices] :
       {std::pair{1, 2}, {2, 1}, {1, 3}, {3, 1}, {1, 4}, {4, 1}, {2, 2}}) {
    SCOPED_TRACE(fmt::format("{} processes x {} devices", processes, devices));
    Training many = one;
    many.processes = processes;
    many.devices = devices;
    many.batch_size = 12 / (processes * devices);
    many.train = Split(processes, many.max_iter, rows);
    const Trained together = Train(many);
    ExpectSameTraining(alone, together);
    ExpectOneHash(together);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Solvers, ::testing::Values("", "type: 'Adam' base_lr: 0.01"));

// LeNet's layers on TestNet's rows: blobs from 80 bytes to 1.6 MB.
std::string LeNet(int batch_size) {
  const std::string net = TestNet(batch_size);
  const auto begin = net.find("layer { name: \"ip1\""), end = net.find("layer { name: \"ip2\"");
  return net.substr(0, begin) + R"(
layer { name: "spread" type: "InnerProduct" bottom: "x" top: "spread"
  inner_product_param { num_output: 784 weight_filler { type: "xavier" } } }
layer { name: "image" type: "Reshape" bottom: "spread" top: "image"
  reshape_param { shape { dim: 0 dim: 1 dim: 28 dim: 28 } } }
layer { name: "conv1" type: "Convolution" bottom: "image" top: "conv1"
  convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
  convolution_param { num_output: 50 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1"
  inner_product_param { num_output: 500 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
)" + net.substr(end);
}

TEST_F(ExactnessTest, LeNetOnTwoRanksEqualsOneProcess) {
  Training one;
  one.max_iter = 3;
  one.net = LeNet(4);
  one.train = Split(1, one.max_iter, 4);
  Training two = one;
  two.processes = 2;
  two.net = LeNet(2);
  two.train = Split(2, two.max_iter, 4);
  const Trained together = Train(two);
  ExpectSameTraining(Train(one), together);
  ExpectOneHash(together);
}

TEST_F(ExactnessTest, RanksOnGpusEqualOneProcessOnTheCpu) {
  Training one;
  one.solver = "iter_size: 2";
  one.train = Split(1, one.max_iter, 24);
  const Trained alone = Train(one);
  setenv("HEARTH_SIMULATED_GPUS", "2", 1);
  for (const auto& [processes, devices] : {std::pair{1, 1}, {1, 2}, {2, 2}}) {
    SCOPED_TRACE(fmt::format("{} processes x {} devices", processes, devices));
    Training many = one;
    many.solver = "iter_size: 2 solver_mode: GPU";
    many.processes = processes;
    many.devices = devices;
    many.batch_size = 12 / (processes * devices);
    many.train = Split(processes, many.max_iter, 24);
    const Trained together = Train(many);
    ExpectSameTraining(alone, together);
    ExpectOneHash(together);
  }
  unsetenv("HEARTH_SIMULATED_GPUS");
}

TEST_F(ExactnessTest, GradientsOfTheseTestsAreClipped) {
  Training clipped;
  clipped.train = Split(1, clipped.max_iter, 12);
  Training free = clipped;
  free.solver = "clip_gradients: -1";
  EXPECT_GT(LargestDifference(Train(clipped), Train(free)), 1e-3);
}

TEST_F(ExactnessTest, TwoRunsOfTheSameJobAreBitIdentical) {
  Training training;
  training.processes = 2;
  training.train = Split(2, 7, 20);  // several shuffled epochs
  const Trained first = Train(training), second = Train(training);
  EXPECT_EQ(first.hashes, second.hashes);
  ExpectOneHash(first);
}

// iter_size is large enough for the longest partition, so each iteration is an epoch. The gradient
// of an iteration is the mean over all rows only if each row counts exactly once.
TEST_F(ExactnessTest, EachRowCountsOncePerEpochInAnyPartitioning) {
  const std::vector<std::vector<int>> partitions = {
      {30, 7, 0}, {1, 0, 0}, {0, 2}, {5, 5}, {0, 0, 9}};
  for (const auto& sizes : partitions) {
    SCOPED_TRACE(::testing::PrintToString(sizes));
    Training many, one;
    many.max_iter = one.max_iter = 3;  // three epochs
    many.batch_size = 4;
    many.solver = "clip_gradients: -1 iter_size: 8";
    many.processes = static_cast<int>(sizes.size());
    int64_t total = 0;
    for (const int size : sizes) {
      many.train.push_back({Numbers(total, total + size)});
      total += size;
    }
    one.batch_size = static_cast<int>(total);
    one.solver = "clip_gradients: -1";
    one.train = {{Numbers(0, total)}};
    ExpectSameTraining(Train(one), Train(many));
  }
}

// The `share`-weighted mean of two trainings' final weights.
Trained Mixed(const Trained& first, const Trained& second, float share) {
  Trained mixed = first;
  const auto mix = [share](std::vector<float>* to, const std::vector<float>& other) {
    for (size_t i = 0; i < to->size(); ++i) {
      (*to)[i] = share * (*to)[i] + (1 - share) * other[i];
    }
  };
  for (int layer = 0; layer < mixed.model.layer_size(); ++layer) {
    for (int blob = 0; blob < mixed.model.layer(layer).blobs_size(); ++blob) {
      mix(mixed.model.mutable_layer(layer)->mutable_blobs(blob)->mutable_data(),
          second.model.layer(layer).blobs(blob).data());
    }
  }
  for (int i = 0; i < mixed.state.history_size(); ++i) {
    mix(mixed.state.mutable_history(i)->mutable_data(), second.state.history(i).data());
  }
  return mixed;
}

// In the two iterations, one rank trains on two minibatches and the other one on 1.5.
TEST_F(ExactnessTest, LocalSgdAveragesRanksByRows) {
  Training two;
  two.processes = 2;
  two.max_iter = 2;
  two.sync_every = 2;
  two.train = {{Numbers(0, 24)}, {Numbers(24, 42)}};
  const Trained together = Train(two);
  ExpectOneHash(together);
  std::vector<Trained> alone;
  for (const Batches& rows : two.train) {
    Training one = two;
    one.processes = 1;
    one.train = {rows};
    alone.push_back(Train(one));
  }
  ExpectSameTraining(Mixed(alone[0], alone[1], 2 / 3.5f), together);
  EXPECT_GT(LargestDifference(alone[0], together), 1e-3);
  two.sync_every = 1;
  EXPECT_GT(LargestDifference(Train(two), together), 1e-4) << "as if each step were summed";
}

TEST_F(ExactnessTest, ARankWithoutRowsDoesNotDiluteTheOthers) {
  Training one;
  one.train = {{Numbers(0, 50)}};  // epochs of four and a half minibatches
  for (const int every : {1, 3, 1000}) {
    SCOPED_TRACE(every);
    Training two = one;
    two.processes = 2;
    two.sync_every = every;
    two.train.push_back({{}});
    const Trained together = Train(two);
    ExpectSameTraining(Train(one), together, 0);
    ExpectOneHash(together);
  }
}

TEST_F(ExactnessTest, LocalSgdEndsWithEqualWeightsAndIsReproducible) {
  Training many;
  many.processes = 2;
  many.devices = 2;
  many.batch_size = 4;
  many.max_iter = 31;
  many.sync_every = 5;
  many.solver = "type: 'Adam' base_lr: 0.01";
  many.net = NetWith(4, "BatchNorm", "");
  many.train = {{Numbers(0, 50)}, {Numbers(50, 77)}};
  const Trained first = Train(many);
  ExpectOneHash(first);
  EXPECT_EQ(Train(many).hashes, first.hashes);
}

const caffe::LayerParameter& LayerOf(const Trained& trained, const std::string& name) {
  for (const auto& layer : trained.model.layer()) {
    if (layer.name() == name) return layer;
  }
  throw std::runtime_error("no layer " + name);
}

// A training of one iteration with batch_size 8, in which process i has the rows rows[i].
Training BatchNormOn(const std::vector<std::vector<int64_t>>& rows) {
  Training training;
  training.max_iter = 1;
  training.processes = static_cast<int>(rows.size());
  training.net = NetWith(8, "BatchNorm", "");
  for (const auto& numbers : rows) training.train.push_back({numbers});
  return training;
}

TEST_F(ExactnessTest, BatchNormStatisticsAreAveragedOverRanksByRows) {
  const auto a = LayerOf(Train(BatchNormOn({Numbers(0, 8)})), "extra");
  const auto b = LayerOf(Train(BatchNormOn({Numbers(8, 12)})), "extra");
  // A rank with half a batch has half the weight; a rank without rows has none.
  const Trained all = Train(BatchNormOn({Numbers(0, 8), Numbers(8, 12), {}}));
  ExpectOneHash(all);
  const auto both = LayerOf(all, "extra");
  ASSERT_EQ(both.blobs().size(), 3u);
  for (int blob = 0; blob < 3; ++blob) {
    for (size_t i = 0; i < both.blobs(blob).data().size(); ++i) {
      const float expected = (a.blobs(blob).data()[i] + 0.5f * b.blobs(blob).data()[i]) / 1.5f;
      EXPECT_NEAR(both.blobs(blob).data()[i], expected, 1e-5) << blob << " " << i;
    }
  }
  EXPECT_GT(std::abs(a.blobs(0).data()[0] - b.blobs(0).data()[0]), 1e-3);
}

TEST_F(ExactnessTest, BatchNormStatisticsOnGpusEqualThoseOnTheCpu) {
  const auto of_solver = [this](const std::string& solver) {
    Training training = BatchNormOn({Numbers(0, 16), Numbers(16, 28)});
    training.devices = 2;
    training.solver = solver;
    return LayerOf(Train(training), "extra");
  };
  const auto expected = of_solver("solver_mode: CPU");
  setenv("HEARTH_SIMULATED_GPUS", "2", 1);
  const auto got = of_solver("solver_mode: GPU");
  unsetenv("HEARTH_SIMULATED_GPUS");
  EXPECT_GT(expected.blobs(2).data()[0], 0.5f);
  for (int blob = 0; blob < 3; ++blob) {
    for (size_t i = 0; i < expected.blobs(blob).data().size(); ++i) {
      EXPECT_NEAR(got.blobs(blob).data()[i], expected.blobs(blob).data()[i], 1e-5) << blob;
    }
  }
}

TEST_F(ExactnessTest, RanksWithBatchNormEndWithEqualStatistics) {
  Training training;
  training.processes = 3;
  training.net = NetWith(4, "BatchNorm", "");
  training.train = {{Numbers(0, 30)}, {Numbers(30, 37)}, {{}}};
  ExpectOneHash(Train(training));
}

// Both ranks have the same rows, so with the same dropout masks they would train like a single
// rank.
TEST_F(ExactnessTest, DropoutDiffersByRankAndIsReproducible) {
  for (const bool dropout : {false, true}) {
    Training one;
    one.max_iter = 5;
    one.net = dropout ? NetWith(4, "Dropout", "") : TestNet(4);
    one.train = {{Numbers(0, 20)}};
    Training two = one;
    two.processes = 2;
    two.train = {{Numbers(0, 20)}, {Numbers(0, 20)}};
    const Trained alone = Train(one), together = Train(two);
    if (!dropout) {
      ExpectSameTraining(alone, together);
      continue;
    }
    EXPECT_GT(LargestDifference(alone, together), 1e-3);
    EXPECT_EQ(Train(two).hashes, together.hashes);
  }
}

}  // namespace
}  // namespace hearth::trainer
