#include "hearth/dataset/partition_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "hearth/dataset/testing/dataset_testing.h"

namespace hearth::dataset {
namespace {

TEST(PartitionWriter, HashDoesNotDependOnBatchBoundaries) {
  Attempt whole(0, 0), parts(0, 1), other(0, 2);
  whole.Write(0, 1000);
  parts.Write(0, 1).Write(1, 700).Write(701, 299);
  other.Write(0, 999).Write(1, 1);
  EXPECT_EQ(whole.hash(), parts.hash());
  EXPECT_NE(whole.hash(), other.hash());
}

TEST(PartitionWriter, WritingAfterCloseIsAnError) {
  PartitionWriter writer(UnnamedFile());
  writer.Close();
  batch::BatchBuilder rows;
  rows.AddInt32("n", {1});
  EXPECT_EQ(Thrown([&] { WriteBatch(writer, rows); }).code(), ErrorCode::kInvalidArgument);
}

TEST(PartitionWriter, FullDiskIsReported) {
  PartitionWriter writer(Fd(::open("/dev/full", O_WRONLY)));
  batch::BatchBuilder rows;
  rows.AddInt32("n", {1});
  EXPECT_EQ(Thrown([&] { WriteBatch(writer, rows); }).code(), ErrorCode::kResourceExhausted);
}

TEST(PartitionWriter, CountsWhatAReaderMayUse) {
  const Fd file = UnnamedFile();
  PartitionWriter writer(Duplicate(file));
  batch::BatchBuilder rows;
  rows.AddInt32("n", {1, 2, 3});
  const Committed first = WriteBatch(writer, rows);
  EXPECT_EQ(first.rows, 3);
  EXPECT_EQ(first.bytes % 64, 0u);
  const Committed second = WriteBatch(writer, rows);
  EXPECT_EQ(second.rows, 6);
  EXPECT_EQ(second.bytes, 2 * first.bytes);
  writer.Close();
  struct stat status = {};
  ASSERT_EQ(::fstat(file.get(), &status), 0);
  EXPECT_EQ(static_cast<uint64_t>(status.st_size), second.bytes);
}

TEST(ImageMaker, ARowLargerThanAnImageIsASeparateImage) {
  batch::BatchBuilder rows;
  rows.AddString("s", {"a", std::string(kImageBytes + 1, 'b'), "c"});
  ArrowSchema schema;
  ArrowArray array;
  rows.Export(&schema, &array);
  std::vector<int64_t> images;
  ImageMaker maker;
  maker.Make(schema, array, false, [&](std::span<const std::byte> image) {
    images.push_back(batch::BatchView(image).rows());
  });
  EXPECT_THAT(images, ::testing::ElementsAre(1, 1, 1));
  EXPECT_EQ(maker.rows(), 3);
}

}  // namespace
}  // namespace hearth::dataset
