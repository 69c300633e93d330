#include "hearth/trainer/train_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/trainer/train_session_harness.h"

namespace hearth::trainer {
namespace {

using TrainSessionTest = TrainSessionFixture;

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

}  // namespace
}  // namespace hearth::trainer
