#include "hearth/caffe/solver/net_outputs.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "hearth/base/log.h"
#include "hearth/caffe/net/testing/net_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;

// Tests a net with two outputs, in alphabetical order: "a" with two values, and "loss" with weight
// 0.5.
class NetOutputsTest : public testing::Test {
 protected:
  NetOutputsTest()
      : net_(ParseNet(R"(
          layer { name: 'a' type: 'DummyData' top: 'a' dummy_data_param { shape { dim: 2 } } }
          layer { name: 'x' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 1 dim: 1 } } }
          layer { name: 'y' type: 'DummyData' top: 'y' dummy_data_param { shape { dim: 1 dim: 1 } } }
          layer { name: 'l' type: 'EuclideanLoss' bottom: 'x' bottom: 'y' top: 'loss'
                  loss_weight: 0.5 })",
                      "net"),
             ContextOf(TEST)) {}

  // Sets the outputs' values.
  void Set(float first, float second, float loss) {
    net_.blob("a").data_ptr()[0] = first;
    net_.blob("a").data_ptr()[1] = second;
    net_.blob("loss").data_ptr()[0] = loss;
  }
  std::vector<std::string> Lines(const std::vector<double>& values) {
    std::vector<std::string> lines;
    log::SetSink([&](const log::Record& record) { lines.emplace_back(record.text); });
    LogOutputs("Test", net_, values);
    log::SetSink({});
    return lines;
  }

  Net net_;
};

TEST_F(NetOutputsTest, AddsWeightedValues) {
  std::vector<double> sums;
  Set(1, 2, 3);
  AddOutputs(net_, 2, &sums);
  EXPECT_THAT(sums, ElementsAre(2, 4, 6));
  Set(10, 20, 30);
  AddOutputs(net_, 0.5, &sums);
  EXPECT_THAT(sums, ElementsAre(7, 14, 21));
}

TEST_F(NetOutputsTest, AnOutputMayGrow) {
  std::vector<double> sums = {1};
  Set(1, 2, 3);
  AddOutputs(net_, 1, &sums);
  EXPECT_THAT(sums, ElementsAre(2, 2, 3));
}

TEST_F(NetOutputsTest, HaveCaffesLogLines) {
  EXPECT_THAT(Lines({1, 2.5, 3}),
              ElementsAre("    Test net output #0: a = 1", "    Test net output #1: a = 2.5",
                          "    Test net output #2: loss = 3 (* 0.5 = 1.5 loss)"));
}

// A test without a minibatch has no values.
TEST_F(NetOutputsTest, ValuesThatAreMissingHaveNoLine) {
  EXPECT_THAT(Lines({1}), ElementsAre("    Test net output #0: a = 1"));
  EXPECT_THAT(Lines({}), ElementsAre());
}

}  // namespace
}  // namespace hearth::caffe
