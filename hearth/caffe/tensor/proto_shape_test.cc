#include "hearth/caffe/tensor/proto_shape.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "hearth/caffe/tensor/shape_count.h"

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

// Caffe wrote such files before 2014. Missing fields are 0.
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

TEST(CountOf, IsBoundedByCaffesInt) {
  const auto count_of = [](const std::vector<int64_t>& shape) { return CountOf(shape); };
  EXPECT_EQ(count_of({}), 1);
  EXPECT_EQ(count_of({3, 4}), 12);
  EXPECT_EQ(count_of({INT32_MAX}), INT32_MAX);
  EXPECT_EQ(count_of({INT32_MAX, 1, 1}), INT32_MAX);
  EXPECT_EQ(count_of({1 << 15, (1 << 16) - 1}), (int64_t{1} << 31) - (1 << 15));
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{int64_t{INT32_MAX} + 1},
                                         {1 << 15, 1 << 16},
                                         {-1},
                                         {-2, -3},
                                         {INT64_MIN},
                                         {INT64_MAX, INT64_MAX},
                                         {INT32_MAX, INT32_MAX, INT32_MAX},
                                         {0, -1},
                                         {0, int64_t{1} << 40}}) {
    EXPECT_EQ(count_of(shape), std::nullopt) << testing::PrintToString(shape);
  }
  EXPECT_EQ(count_of({0, INT32_MAX, INT32_MAX}), 0) << "an axis of length 0 holds no values";
}

}  // namespace
}  // namespace hearth::caffe
