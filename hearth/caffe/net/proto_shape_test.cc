#include "hearth/caffe/net/proto_shape.h"

#include <gmock/gmock.h>

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ProtoShape, IsInOneOfTwoForms) {
  BlobProto proto;
  *proto.mutable_shape()->mutable_dim() = {2, 3};
  EXPECT_FALSE(HasLegacyShape(proto));
  EXPECT_THAT(ShapeOf(proto), ElementsAre(2, 3));
  EXPECT_EQ(ShapeString(proto), "2 3 (6)");
}

// As written by Caffe before 2014: missing fields are 0.
TEST(ProtoShape, LegacyFieldsTakePrecedence) {
  BlobProto proto;
  *proto.mutable_shape()->mutable_dim() = {2, 3};
  proto.set_width(5);
  EXPECT_TRUE(HasLegacyShape(proto));
  EXPECT_THAT(ShapeOf(proto), ElementsAre(0, 0, 0, 5));
  proto.set_num(1);
  proto.set_channels(2);
  proto.set_height(3);
  EXPECT_THAT(ShapeOf(proto), ElementsAre(1, 2, 3, 5));
  EXPECT_EQ(ShapeString(proto), "1 2 3 5 (30)");
}

TEST(ProtoShape, OfAScalarIsEmpty) {
  EXPECT_THAT(ShapeOf(BlobProto()), IsEmpty());
  EXPECT_EQ(ShapeString(BlobProto()), "(1)");
}

TEST(ProtoShape, OfADamagedFileIsShownWithoutOverflow) {
  BlobProto proto;
  *proto.mutable_shape()->mutable_dim() = {int64_t{1} << 62, 8};
  EXPECT_EQ(ShapeString(proto), "4611686018427387904 8 (too many)");
}

}  // namespace
}  // namespace hearth::caffe
