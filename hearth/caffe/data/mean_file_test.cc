#include "hearth/caffe/data/mean_file.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "hearth/base/error.h"
#include "hearth/base/testing/test_folder_testing.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/proto/wire_reader.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;

TEST(MeanFile, ReadsEveryFormatOfCaffe) {
  const std::string folder = std::string(HEARTH_TEST_DATA) + "/golden/files/";
  const MeanImage mean = ReadMeanFile(folder + "mean.binaryproto");
  EXPECT_EQ(mean.channels * mean.height * mean.width, static_cast<int64_t>(mean.values.size()));
  for (const char* name : {"mean_shape.binaryproto", "mean_double.binaryproto"}) {
    EXPECT_EQ(ReadMeanFile(folder + name).values, mean.values) << name;
  }
}

TEST(MeanFile, RejectsDimensionsWhoseProductOverflows) {
  const std::string path = TestFolder() + "mean_file_overflow_test";
  const std::vector<std::vector<int64_t>> shapes = {
      {1 << 16, 1 << 24, 1 << 24},  // 2^64, which wraps to 0
      {3, int64_t{1} << 62, int64_t{1} << 62},
      {-1, -1, 4},
      {4, -(int64_t{1} << 62), -(int64_t{1} << 62)},
  };
  for (const std::vector<int64_t>& shape : shapes) {
    BlobProto proto;
    *proto.mutable_shape()->mutable_dim() = shape;
    if (shape[0] < 0) *proto.mutable_data() = {1, 2, 3, 4};
    storage::AtomicFile file(path);
    file.Append(WireBytes(proto));
    file.Commit();
    EXPECT_THAT([&] { ReadMeanFile(path); }, testing::ThrowsMessage<Error>(testing::HasSubstr(
                                                 "but its shape is not that of one image")));
  }
  std::filesystem::remove(path);
}

TEST(MeanFile, IsWrittenWithTheFourOldFields) {
  const std::string path = TestFolder() + "mean_file_test";
  WriteMeanFile({2, 1, 2, {1, 2, 3, 4}}, path);
  BlobProto proto;
  ParseWire(storage::ReadFile(path), path, &proto);
  EXPECT_THAT((std::vector<int>{proto.num(), proto.channels(), proto.height(), proto.width()}),
              ElementsAre(1, 2, 1, 2));
  EXPECT_FALSE(proto.has_shape());
  EXPECT_THAT(ReadMeanFile(path).values, ElementsAre(1, 2, 3, 4));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace hearth::caffe
