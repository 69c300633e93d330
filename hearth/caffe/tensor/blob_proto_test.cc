#include "hearth/caffe/tensor/blob_proto.h"

#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/tensor/testing/tensor_testing.h"

namespace hearth::caffe {
namespace {

TEST(BlobProto, RoundTrips) {
  Blob blob({2, 2}), again({2, 2});
  blob.data().fill_(3);
  blob.diff().fill_(4);
  BlobProto proto;
  WriteBlob(blob, true, &proto);
  ReadBlobData(proto, &again);
  EXPECT_EQ(TotalOf(again.data()), 12.0f);
  EXPECT_EQ(TotalOf(again.diff()), 16.0f);
}

TEST(BlobProto, AcceptsLegacyShapes) {
  BlobProto proto;
  proto.set_num(1);
  proto.set_channels(1);
  proto.set_height(3);
  proto.set_width(5);
  EXPECT_TRUE(HasShapeOf(Blob({3, 5}), proto));
  EXPECT_TRUE(HasShapeOf(Blob({1, 1, 3, 5}), proto));
  EXPECT_FALSE(HasShapeOf(Blob({5, 3}), proto));
  EXPECT_EQ(ShapeString(proto), "1 1 3 5 (15)");
}

TEST(BlobProto, ReadsDoubles) {
  BlobProto proto;
  *proto.mutable_double_data() = {1.5, 2.5};
  Blob blob({2});
  ReadBlobData(proto, &blob);
  EXPECT_EQ(blob.data_ptr()[1], 2.5f);
}

TEST(BlobProto, HasARequestedDiffEvenIfThereIsNone) {
  Blob written({2}), untouched({2});
  written.diff().fill_(3);
  written.ClearDiff();
  BlobProto proto;
  WriteBlob(untouched, /*write_diff=*/true, &proto);
  EXPECT_THAT(proto.diff(), testing::ElementsAre(0, 0));
  WriteBlob(written, /*write_diff=*/true, &proto);
  EXPECT_THAT(proto.diff(), testing::ElementsAre(0, 0));
  written.diff().fill_(4);
  WriteBlob(written, /*write_diff=*/true, &proto);
  EXPECT_THAT(proto.diff(), testing::ElementsAre(4, 4));
}

TEST(BlobProto, RejectsTooFewValues) {
  BlobProto proto;
  proto.add_data(1);
  Blob blob({2});
  EXPECT_THROW(ReadBlobData(proto, &blob), Error);
}

}  // namespace
}  // namespace hearth::caffe
