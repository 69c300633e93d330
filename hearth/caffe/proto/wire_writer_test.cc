#include "hearth/caffe/proto/wire_writer.h"

#include <gmock/gmock.h>

#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/proto/wire_reader.h"

namespace hearth::caffe {
namespace {

TEST(WireBytes, EqualProtobufsEncoding) {
  BlobProto blob;
  *blob.mutable_data() = {1, -2};
  blob.mutable_shape()->add_dim(2);
  blob.mutable_shape()->add_dim(1);
  EXPECT_EQ(WireBytes(blob),
            std::string("\x2a\x08\0\0\x80\x3f\0\0\0\xc0\x3a\x04\x0a\x02\x02\x01", 16));
  SolverParameter solver;
  solver.set_random_seed(-1);
  EXPECT_EQ(WireBytes(solver), std::string("\xa0\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12));
}

TEST(WireBytes, WritesFieldsSetToTheirDefault) {
  NetState state;
  state.set_level(0);
  EXPECT_EQ(WireBytes(state), std::string("\x10\0", 2));
}

TEST(WriteWire, PassesLargeArraysWithoutACopy) {
  NetParameter net;
  BlobProto* blob = net.add_layer()->add_blobs();
  blob->mutable_data()->resize(100'000, 0.5f);
  bool direct = false;
  std::string bytes;
  WriteWire(net, [&](std::string_view chunk) {
    direct |= static_cast<const void*>(chunk.data()) == blob->data().data();
    bytes += chunk;
  });
  EXPECT_TRUE(direct);
  EXPECT_EQ(bytes, WireBytes(net));
  NetParameter again;
  ParseWire(bytes, "file", &again);
  EXPECT_EQ(again.layer(0).blobs(0).data(), blob->data());
}

TEST(WireBytes, KeepsUnpackedFieldsUnpacked) {
  LayerParameter layer;
  layer.add_loss_weight(1);
  layer.add_loss_weight(2);
  EXPECT_EQ(WireBytes(layer).size(), 10u);
}

}  // namespace
}  // namespace hearth::caffe
