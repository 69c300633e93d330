#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/net/net.h"
#include "hearth/caffe/net/testing/net_testing.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::unique_ptr<Net> NetWithWeights(uint64_t seed, const std::string& middle = "") {
  return std::make_unique<Net>(ParseNet(RowsNet(4, 4, 0, middle), "net"), ContextOf(TRAIN, seed),
                               TestRegistry());
}

TEST(NetWeights, AreCopiedByLayerName) {
  auto from = NetWithWeights(1),
       to = NetWithWeights(2,
                           "layer { name: 'new' type: 'InnerProduct' bottom: 'h' top: 'n'"
                           " inner_product_param { num_output: 2 } }");
  to->CopyTrainedLayersFrom(from->ToProto());
  EXPECT_TRUE(Equal(from->layer("ip2").blobs()[0]->data(), to->layer("ip2").blobs()[0]->data()));
}

TEST(NetWeights, OfAnotherShapeAreRejected) {
  auto net = NetWithWeights(1);
  NetParameter trained = net->ToProto();
  trained.mutable_layer(1)->mutable_blobs(0)->mutable_shape()->set_dim(0, 5);
  EXPECT_THAT(
      [&] { net->CopyTrainedLayersFrom(trained); },
      ThrowsMessage<Error>(HasSubstr("layer 'ip1': parameter 0 has shape 4 3 (12), but the trained "
                                     "one has 5 3 (15); rename the layer")));
  trained.mutable_layer(1)->clear_blobs();
  EXPECT_THAT(
      [&] { net->CopyTrainedLayersFrom(trained); },
      ThrowsMessage<Error>(HasSubstr("layer 'ip1' has 2 parameter(s), but the trained layer")));
}

// As in HDF5 models, the weights that another layer owns may be missing, at the end of a layer's
// list or before it.
TEST(NetWeights, ThatAnotherLayerOwnsMayBeLeftOut) {
  const char* const shared =
      "layer { name: 'a' type: 'InnerProduct' bottom: 'h' top: 'a' param { name: 'w' }"
      " inner_product_param { num_output: 2 } }"
      "layer { name: 'b' type: 'InnerProduct' bottom: 'h' top: 'b' param { name: 'w' }"
      " inner_product_param { num_output: 2 } }"
      "layer { name: 'c' type: 'InnerProduct' bottom: 'h' top: 'c' param { name: 'w' }"
      " inner_product_param { num_output: 2 bias_term: false } }";
  auto from = NetWithWeights(1, shared), to = NetWithWeights(2, shared);
  from->layer("a").blobs()[0]->data().fill_(3);
  from->layer("b").blobs()[1]->data().fill_(4);
  NetParameter trained = from->ToProto();
  for (LayerParameter& layer : *trained.mutable_layer()) {
    if (layer.name() == "b") *layer.mutable_blobs(0) = BlobProto();
    if (layer.name() == "c") layer.clear_blobs();
  }
  to->CopyTrainedLayersFrom(trained);
  EXPECT_EQ(to->layer("c").blobs()[0]->data_ptr()[0], 3);
  EXPECT_EQ(to->layer("b").blobs()[1]->data_ptr()[0], 4);
  for (LayerParameter& layer : *trained.mutable_layer()) {
    if (layer.name() == "b") layer.mutable_blobs()->pop_back();
  }
  EXPECT_THAT([&] { to->CopyTrainedLayersFrom(trained); },
              ThrowsMessage<Error>(HasSubstr("layer 'b' has 2 parameter(s)")));
}

TEST(NetWeights, AreSharedWithoutACopy) {
  auto train = NetWithWeights(1), test = NetWithWeights(2);
  test->ShareTrainedLayersWith(*train);
  for (const char* layer : {"ip1", "ip2"}) {
    EXPECT_EQ(train->layer(layer).blobs()[0]->data_ptr(),
              test->layer(layer).blobs()[0]->data_ptr());
  }
  test->Fetch();
  train->Fetch();
  EXPECT_EQ(test->Forward(), train->Forward());
}

TEST(NetWeights, IncludeDiffsOnRequest) {
  auto net = NetWithWeights(1);
  net->Fetch();
  net->Forward();
  net->Backward();
  EXPECT_TRUE(net->ToProto(false).layer(1).blobs(0).diff().empty());
  EXPECT_EQ(net->ToProto(true).layer(1).blobs(0).diff_size(), 12);
}

// An int8 net rounds weights once, so it must notice when they are replaced.
TEST(NetWeights, AreRoundedAgainByAnInt8NetAfterTheyWereLoadedOrShared) {
  NetContext context = ContextOf(TEST);
  context.precision = Precision::kInt8;
  const auto int8_net = [&] {
    auto net = std::make_unique<Net>(ParseNet(RowsNet(4, 4), "net"), context, TestRegistry());
    net->Fetch();
    return net;
  };
  const auto output = [](Net& net) {
    net.Forward();
    return net.blob("y").data().clone();
  };
  auto trained = NetWithWeights(1), other = NetWithWeights(2), expected = int8_net();
  expected->CopyTrainedLayersFrom(trained->ToProto());
  const Tensor wanted = output(*expected);

  auto net = int8_net();
  EXPECT_FALSE(Equal(output(*net), wanted));
  net->CopyTrainedLayersFrom(trained->ToProto());
  EXPECT_TRUE(Equal(output(*net), wanted));
  net->ShareTrainedLayersWith(*other);
  EXPECT_FALSE(Equal(output(*net), wanted));
  net->ShareTrainedLayersWith(*trained);
  EXPECT_TRUE(Equal(output(*net), wanted));
}

}  // namespace
}  // namespace hearth::caffe
