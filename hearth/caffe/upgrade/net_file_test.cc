#include "hearth/caffe/upgrade/net_file.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/text_reader.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ParseNet, ConvertsLegacyInputsToALayer) {
  const NetParameter net = ParseNet(
      "input: 'a' input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 4 layer { name: 'r' type: "
      "'ReLU' }",
      "net");
  ASSERT_EQ(net.layer_size(), 2);
  EXPECT_EQ(net.layer(0).type(), "Input");
  EXPECT_THAT(net.layer(0).top(), ElementsAre("a"));
  EXPECT_THAT(net.layer(0).input_param().shape(0).dim(), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(net.input().empty());
  const NetParameter shaped = ParseNet("input: 'a' input_shape { dim: 5 }", "net");
  EXPECT_THAT(shaped.layer(0).input_param().shape(0).dim(), ElementsAre(5));
}

TEST(ParseNet, ChecksTheNumberOfLegacyDimensions) {
  EXPECT_THAT([] { ParseNet("input: 'a' input_dim: 1 input_dim: 2", "net"); },
              ThrowsMessage<Error>(HasSubstr("1 input(s) need 4 input_dim")));
}

TEST(ParseSolver, ConvertsSolverTypeToType) {
  EXPECT_EQ(ParseSolver("solver_type: ADAGRAD", "solver").type(), "AdaGrad");
  EXPECT_EQ(ParseSolver("max_iter: 1", "solver").type(), "SGD");
  EXPECT_THROW(ParseSolver("solver_type: ADAM type: 'Adam'", "solver"), Error);
}

TEST(ReadNet, NamesAMissingFile) {
  EXPECT_THAT([] { ReadNet("/nowhere/net.prototxt"); },
              ThrowsMessage<Error>(HasSubstr("cannot open /nowhere/net.prototxt")));
}

TEST(UpgradeNet, ReturnsWhetherItChangedTheNet) {
  const auto upgrade = [](const char* text) {
    NetParameter net;
    ParseText(text, "net", &net);
    return UpgradeNet(&net, "net");
  };
  EXPECT_TRUE(upgrade("layers { name: 'a' type: RELU }"));
  EXPECT_TRUE(upgrade("input: 'a' input_shape { dim: 1 }"));
  EXPECT_TRUE(upgrade("layer { type: 'BatchNorm' param { } param { } param { } }"));
  EXPECT_FALSE(upgrade("layer { name: 'a' type: 'ReLU' }"));
}

}  // namespace
}  // namespace hearth::caffe
