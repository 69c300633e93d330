#include "hearth/caffe/net/net_splits.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;

constexpr char kInput[] = "layer { name: 'in' type: 'Input' top: 'x' }";

TEST(InsertSplits, LeavesSingleConsumersAlone) {
  const NetParameter net = ParseNet(std::string(kInput) +
                                        "layer { name: 'a' type: 'ReLU' bottom: 'x' top: 'x' }"
                                        "layer { name: 'b' type: 'ReLU' bottom: 'x' top: 'y' }",
                                    "net");
  EXPECT_EQ(InsertSplits(net).layer_size(), 3);
}

TEST(InsertSplits, GivesEachConsumerItsOwnTop) {
  const NetParameter net = InsertSplits(ParseNet(
      std::string(kInput) + "layer { name: 'b' type: 'ReLU' bottom: 'x' top: 'b' }"
                            "layer { name: 'c' type: 'Eltwise' bottom: 'x' bottom: 'b' top: 'c' }",
      "net"));
  ASSERT_EQ(net.layer_size(), 4);
  EXPECT_EQ(net.layer(1).name(), "x_in_0_split");
  EXPECT_THAT(net.layer(1).top(), ElementsAre("x_in_0_split_0", "x_in_0_split_1"));
  EXPECT_THAT(net.layer(3).bottom(), ElementsAre("x_in_0_split_1", "b"));
}

TEST(InsertSplits, MovesALossWeightToTheFirstSplit) {
  const NetParameter net = InsertSplits(
      ParseNet(std::string(kInput) +
                   "layer { name: 'l' type: 'Reduction' bottom: 'x' top: 'l' loss_weight: 0.5 }"
                   "layer { name: 'b' type: 'ReLU' bottom: 'l' top: 'b' }",
               "net"));
  ASSERT_EQ(net.layer_size(), 4);
  EXPECT_TRUE(net.layer(1).loss_weight().empty());
  EXPECT_THAT(net.layer(2).loss_weight(), ElementsAre(0.5f, 0.0f));
  EXPECT_THAT(net.layer(3).bottom(), ElementsAre("l_l_0_split_1"));
}

TEST(InsertSplits, NamesAnUnknownBottom) {
  const NetParameter net = ParseNet(
      std::string(kInput) + "layer { name: 'b' type: 'ReLU' bottom: 'xx' top: 'b' }", "net");
  EXPECT_THAT(
      [&] { InsertSplits(net); },
      testing::ThrowsMessage<Error>(testing::HasSubstr(
          "layer 'b' (ReLU): no earlier layer has the top 'xx' for bottom 0; did you mean x?")));
}

TEST(InsertSplits, AnInPlaceLayerWritesAnotherValue) {
  // The first value of x has two consumers. The value that b writes in place has three.
  const NetParameter net = InsertSplits(
      ParseNet(std::string(kInput) + "layer { name: 'a' type: 'ReLU' bottom: 'x' top: 'a' }"
                                     "layer { name: 'b' type: 'ReLU' bottom: 'x' top: 'x' }"
                                     "layer { name: 'c' type: 'ReLU' bottom: 'x' top: 'c' }"
                                     "layer { name: 'd' type: 'ReLU' bottom: 'x' top: 'd' }"
                                     "layer { name: 'e' type: 'ReLU' bottom: 'x' top: 'e' }",
               "net"));
  ASSERT_EQ(net.layer_size(), 8);
  EXPECT_EQ(net.layer(1).name(), "x_in_0_split");
  EXPECT_THAT(net.layer(3).bottom(), ElementsAre("x_in_0_split_1"));
  EXPECT_THAT(net.layer(3).top(), ElementsAre("x"));
  EXPECT_EQ(net.layer(4).name(), "x_b_0_split");
  EXPECT_EQ(net.layer(4).top_size(), 3);
  EXPECT_THAT(net.layer(7).bottom(), ElementsAre("x_b_0_split_2"));
}

TEST(InsertSplits, ALayerThatReadsABlobTwiceIsTwoConsumers) {
  const NetParameter net = InsertSplits(ParseNet(
      std::string(kInput) + "layer { name: 'e' type: 'Eltwise' bottom: 'x' bottom: 'x' top: 'e' }",
      "net"));
  ASSERT_EQ(net.layer_size(), 3);
  EXPECT_THAT(net.layer(2).bottom(), ElementsAre("x_in_0_split_0", "x_in_0_split_1"));
}

TEST(InsertSplits, ALossThatNoLayerReadsKeepsItsWeight) {
  const NetParameter net = InsertSplits(
      ParseNet(std::string(kInput) +
                   "layer { name: 'l' type: 'Reduction' bottom: 'x' top: 'l' loss_weight: 0.5 }"
                   "layer { name: 'm' type: 'Reduction' bottom: 'l' top: 'm' loss_weight: 0 }",
               "net"));
  ASSERT_EQ(net.layer_size(), 4) << "the first loss is read by the second";
  EXPECT_THAT(net.layer(3).loss_weight(), ElementsAre(0.0f));
  EXPECT_EQ(InsertSplits(NetParameter()).layer_size(), 0);
}

TEST(InsertSplits, ABottomMayNotComeFromALaterLayerOrTheLayerItself) {
  for (const char* layers : {"layer { name: 'a' type: 'ReLU' bottom: 'b' top: 'a' }"
                             "layer { name: 'b' type: 'ReLU' bottom: 'x' top: 'b' }",
                             "layer { name: 'a' type: 'ReLU' bottom: 'a' top: 'a' }"}) {
    const NetParameter net = ParseNet(std::string(kInput) + layers, "net");
    EXPECT_THAT([&] { InsertSplits(net); },
                testing::ThrowsMessage<Error>(testing::HasSubstr("layer 'a' (ReLU): no earlier")));
  }
}

}  // namespace
}  // namespace hearth::caffe
