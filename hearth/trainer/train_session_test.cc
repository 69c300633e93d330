#include "hearth/trainer/train_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "hearth/base/error.h"
#include "hearth/base/hmac.h"
#include "hearth/base/thread.h"
#include "hearth/caffe/snapshot.h"
#include "hearth/rendezvous/coordinator.h"
#include "hearth/trainer/trainer_harness.h"

namespace hearth::trainer {
namespace {

using Batches = std::vector<std::vector<int64_t>>;

// A training whose processes are threads of the test.
struct Training {
  int processes = 1;
  int devices = 1;
  int batch_size = 12;
  int max_iter = 20;
  std::string solver;                // added to TestSolver
  std::vector<Batches> train, test;  // per process; no test: no validation
  std::string snapshot;              // to resume from
};

struct Trained {
  caffe::NetParameter model;
  caffe::SolverState state;
  std::vector<nlohmann::json> events;  // of process 0
};

class TrainSessionTest : public ::testing::Test {
 protected:
  Job JobOf(const Training& training, int rank, int port) {
    Job job;
    job.token = token_;
    if (port > 0) job.coordinator = Endpoint{"127.0.0.1", port};
    job.rank = rank;
    job.world = training.processes;
    job.devices = training.devices;
    job.solver = {"tiny_solver.prototxt",
                  TestSolver(training.max_iter, "snapshot_after_train: true " + training.solver)};
    job.net = {"tiny.prototxt", TestNet(training.batch_size)};
    job.model = folder_.path("final.caffemodel");
    job.snapshot = training.snapshot;
    job.validate = !training.test.empty();
    job.seed = 3;
    return job;
  }

  static StreamFds Feed(const Batches& batches, std::vector<Thread>* feeders) {
    feed::RingEnds ends = feed::CreateRing(1 << 20);
    auto writer = std::make_shared<feed::RingWriter>(std::move(ends.writer));
    feeders->emplace_back("feeder", [writer, batches] { WriteRows(writer.get(), batches); });
    return {ends.reader.memory.Release(), ends.reader.signal.Release()};
  }

  Trained Train(const Training& training) {
    std::optional<rendezvous::Coordinator> coordinator;
    if (training.processes > 1) {
      rendezvous::CoordinatorOptions options;
      options.world = training.processes;
      options.token = token_;
      coordinator.emplace(options);
    }
    Trained trained;
    std::mutex mutex;
    std::vector<Thread> feeders, processes;
    for (int rank = 0; rank < training.processes; ++rank) {
      Job job = JobOf(training, rank, coordinator ? coordinator->port() : 0);
      job.train = Feed(training.train[static_cast<size_t>(rank)], &feeders);
      if (job.validate) job.test = Feed(training.test[static_cast<size_t>(rank)], &feeders);
      TrainHooks hooks;
      hooks.send = [&, rank](const nlohmann::json& event) {
        std::lock_guard lock(mutex);
        if (rank == 0) trained.events.push_back(event);
      };
      processes.emplace_back("process",
                             [job = std::move(job), hooks] { TrainSession(job, hooks).Run(); });
    }
    for (Thread& process : processes) process.Join();
    trained.model = caffe::ReadModel(folder_.path("final.caffemodel"));
    trained.state =
        caffe::ReadState(folder_.path(fmt::format("tiny_iter_{}.solverstate", training.max_iter)));
    return trained;
  }

  TestFolder folder_;
  const std::string token_ = NewToken();
};

void ExpectNear(const caffe::BlobProto& a, const caffe::BlobProto& b, const std::string& what) {
  ASSERT_EQ(a.data().size(), b.data().size()) << what;
  for (size_t i = 0; i < a.data().size(); ++i) {
    const float tolerance = 1e-5f * std::max(1.0f, std::abs(a.data()[i]));
    ASSERT_NEAR(a.data()[i], b.data()[i], tolerance) << what << "[" << i << "]";
  }
}

void ExpectSameTraining(const Trained& a, const Trained& b) {
  ASSERT_EQ(a.model.layer().size(), b.model.layer().size());
  for (size_t i = 0; i < a.model.layer().size(); ++i) {
    const auto& layer = a.model.layer()[i];
    for (size_t j = 0; j < layer.blobs().size(); ++j) {
      ExpectNear(layer.blobs()[j], b.model.layer()[i].blobs()[j], layer.name());
    }
  }
  ASSERT_EQ(a.state.history().size(), b.state.history().size());
  ASSERT_GT(a.state.history().size(), 0u);
  for (size_t i = 0; i < a.state.history().size(); ++i) {
    ExpectNear(a.state.history()[i], b.state.history()[i], "history");
  }
}

// Iteration k of the whole job trains on rows [k * rows, (k + 1) * rows), whoever holds them.
std::vector<Batches> Split(int processes, int iterations, int rows) {
  std::vector<Batches> split(static_cast<size_t>(processes));
  const int each = rows / processes;
  for (int k = 0; k < iterations; ++k) {
    for (int p = 0; p < processes; ++p) {
      split[static_cast<size_t>(p)].push_back(
          Numbers(k * rows + p * each, k * rows + (p + 1) * each));
    }
  }
  return split;
}

TEST_F(TrainSessionTest, RanksAndDevicesTrainAsOneProcessAtTheWholeBatch) {
  const int rows = 24;  // of one iteration: iter_size 2 at batch 12
  Training one;
  one.solver = "iter_size: 2";
  one.train = Split(1, one.max_iter, rows);
  const Trained alone = Train(one);
  for (const auto& [processes, devices] : {std::pair{1, 2}, {2, 1}, {2, 2}, {3, 1}}) {
    SCOPED_TRACE(fmt::format("{} processes x {} devices", processes, devices));
    Training many = one;
    many.processes = processes;
    many.devices = devices;
    many.batch_size = 12 / (processes * devices);
    many.train = Split(processes, many.max_iter, rows);
    ExpectSameTraining(alone, Train(many));
  }
}

TEST_F(TrainSessionTest, TwoRunsOfTheSameJobAreBitIdentical) {
  Training training;
  training.processes = 2;
  training.train = Split(2, 7, 20);  // several shuffled epochs
  const Trained first = Train(training), second = Train(training);
  EXPECT_EQ(first.model.layer(1).blobs(0).data(), second.model.layer(1).blobs(0).data());
}

// With as many passes per iteration as the longest partition needs, an iteration is an epoch; its
// gradient is the mean over all rows only when each row counts once, and all count alike.
TEST_F(TrainSessionTest, EachRowCountsOncePerEpochHoweverTheRowsLie) {
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

TEST_F(TrainSessionTest, NoRowsAnywhereIsAnErrorThatSaysSo) {
  Training training;
  training.train = {{{}}};
  try {
    Train(training);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), ::testing::HasSubstr("no rows to train on"));
  }
}

std::vector<nlohmann::json> ValidationsIn(const Trained& trained) {
  std::vector<nlohmann::json> found;
  for (const auto& event : trained.events) {
    if (event["event"] == "validation") found.push_back(event);
  }
  return found;
}

TEST_F(TrainSessionTest, ValidationIsTheMeanOverTheRowsOfAllRanks) {
  Training one;
  one.max_iter = 6;
  one.batch_size = 10;
  one.solver = "test_iter: 100 test_interval: 2 base_lr: 0.1";
  one.train = Split(1, 6, 10);
  one.test = {{Numbers(100, 137)}};
  const auto alone = ValidationsIn(Train(one));
  ASSERT_EQ(alone.size(), 3u);  // after iterations 2, 4 and 6
  // The set divides neither by the batch nor by the ranks; a rank may hold none of it.
  for (const int64_t first_rank : {37, 20, 0}) {
    SCOPED_TRACE(first_rank);
    Training two = one;
    two.processes = 2;
    two.batch_size = 5;
    two.train = Split(2, 6, 10);
    two.test = {{Numbers(100, 100 + first_rank)}, {Numbers(100 + first_rank, 137)}};
    const auto together = ValidationsIn(Train(two));
    ASSERT_EQ(together.size(), 3u);
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(together[i]["iteration"], alone[i]["iteration"]);
      for (const char* name : {"accuracy", "loss"}) {
        const std::vector<float> a = alone[i]["outputs"][name], b = together[i]["outputs"][name];
        ASSERT_EQ(a.size(), 1u);
        EXPECT_NEAR(a[0], b[0], 1e-4) << name;
      }
    }
  }
}

TEST_F(TrainSessionTest, EventsTellOfStartProgressAndEnd) {
  Training training;
  training.train = Split(1, 20, 12);
  const Trained trained = Train(training);
  ASSERT_GE(trained.events.size(), 3u);
  EXPECT_EQ(trained.events.front()["event"], "ready");
  const auto& done = trained.events.back();
  EXPECT_EQ(done["event"], "done");
  EXPECT_EQ(done["iteration"], 20);
  EXPECT_EQ(done["model"], folder_.path("final.caffemodel"));
  EXPECT_EQ(done["snapshot"], folder_.path("tiny_iter_20.solverstate"));
  const auto& last = trained.events[trained.events.size() - 2];
  EXPECT_EQ(last["event"], "progress");
  EXPECT_EQ(last["iteration"], 20);
  EXPECT_EQ(last["effective_batch"], 12);
  EXPECT_LT(last["loss"], 1.4);
}

TEST_F(TrainSessionTest, ResumedTrainingEndsAsAnUnbrokenOne) {
  Training whole;
  whole.processes = 2;
  whole.batch_size = 6;
  whole.solver = "snapshot: 10";
  whole.train = Split(2, 20, 12);
  const Trained unbroken = Train(whole);
  Training rest = whole;
  rest.snapshot = folder_.path("tiny_iter_10.solverstate");
  ExpectSameTraining(unbroken, Train(rest));
}

}  // namespace
}  // namespace hearth::trainer
