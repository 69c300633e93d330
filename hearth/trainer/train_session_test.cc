#include "hearth/trainer/train_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/layers/python_layer.h"
#include "hearth/trainer/testing/train_session_testing.h"

namespace hearth::trainer {
namespace {

using TrainSessionTest = TrainSessionFixture;

TEST_F(TrainSessionTest, FailsIfNoRankHasRows) {
  Training training;
  training.train = {{{}}};
  try {
    Train(training);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), ::testing::HasSubstr("no rows to train on"));
  }
}

TEST_F(TrainSessionTest, ValidationIsTheMeanOverAllRanksRows) {
  Training one;
  one.max_iter = 6;
  one.batch_size = 10;
  one.solver = "test_iter: 100 test_interval: 2 base_lr: 0.1";
  one.train = Split(1, 6, 10);
  one.test = {{Numbers(100, 137)}};
  const auto alone = ValidationsIn(Train(one));
  ASSERT_EQ(alone.size(), 3u);  // after iterations 2, 4 and 6
  // The number of validation rows is not a multiple of the batch size or of the ranks, and a rank
  // may have no rows.
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

TEST_F(TrainSessionTest, SendsEventsOfStartProgressAndEnd) {
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

// A layer that copies its bottom to its top. On rank 1, the third forward pass fails or changes the
// layer's parameter.
class OddLayer : public caffe::Layer {
 public:
  using Layer::Layer;
  caffe::LayerTraits traits() const override { return {.runs_user_code = true}; }
  void SetUp(const caffe::Blobs&, const caffe::Blobs&) override {
    blobs_ = {std::make_shared<caffe::Blob>(caffe::Shape{1})};
  }
  void Reshape(const caffe::Blobs& bottom, const caffe::Blobs& top) override {
    top[0]->ReshapeLike(*bottom[0]);
  }
  void Forward(const caffe::Blobs& bottom, const caffe::Blobs& top) override {
    top[0]->data().copy_(bottom[0]->data());
    if (context().rank != 1 || ++passes_ != 3) return;
    Require(param_.python_param().param_str() != "fail", ErrorCode::kInternal, "made to fail");
    *blobs_[0]->data_ptr() += 1e-6f;
  }
  void Backward(const caffe::Blobs& top, const std::vector<bool>&,
                const caffe::Blobs& bottom) override {
    bottom[0]->diff().copy_(top[0]->diff());
  }

 private:
  int passes_ = 0;
};

TEST_F(TrainSessionTest, DevicesOfAProcessShareWeights) {
  std::string said;
  log::SetSink([&](const log::Record& record) { said += std::string(record.text) + "\n"; });
  Training training;
  training.devices = 2;
  training.batch_size = 6;
  training.train = Split(1, training.max_iter, 12);
  Train(training);
  EXPECT_THAT(said, ::testing::HasSubstr("The 2 devices of a process share its weights"));
  said.clear();
  training.net = TestNet(6);
  training.net.insert(training.net.find("layer { name: \"ip2\""), R"(
layer { name: "bn" type: "BatchNorm" bottom: "ip1" top: "ip1" }
)");
  Train(training);
  EXPECT_THAT(said, ::testing::Not(::testing::HasSubstr("share its weights")));
  log::SetSink({});
}

class OddRankTest : public TrainSessionFixture, public ::testing::WithParamInterface<bool> {
 protected:
  OddRankTest() {
    caffe::SetPythonLayerFactory([](const auto& param, const auto& context) {
      return std::make_unique<OddLayer>(param, context);
    });
  }
  ~OddRankTest() override { caffe::SetPythonLayerFactory(nullptr); }

  // Returns the error of a training by two processes, or by two devices of one process.
  std::string FailureWith(const std::string& what) {
    Training training;
    (GetParam() ? training.processes : training.devices) = 2;
    training.batch_size = 6;
    training.net = TestNet(6) + fmt::format(R"(
layer {{ name: "odd" type: "Python" bottom: "ip2" top: "odd" include {{ phase: TRAIN }}
  python_param {{ module: "m" layer: "L" param_str: "{}" }} }}
layer {{ name: "end" type: "SoftmaxWithLoss" bottom: "odd" bottom: "label" top: "end"
  include {{ phase: TRAIN }} }})",
                                            what);
    training.train = Split(training.processes, training.max_iter, 12);
    try {
      Train(training);
    } catch (const Error& error) {
      return error.message();
    }
    return "nothing";
  }
};

TEST_P(OddRankTest, NoticesWeightsThatDiverge) {
  EXPECT_THAT(FailureWith("drift"), ::testing::HasSubstr("weights differ from those of other"));
}

TEST_P(OddRankTest, AFailureEndsTheOtherRanksWaits) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(FailureWith("fail"), ::testing::HasSubstr("layer 'odd'"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

INSTANTIATE_TEST_SUITE_P(DevicesAndProcesses, OddRankTest, ::testing::Bool());

}  // namespace
}  // namespace hearth::trainer
