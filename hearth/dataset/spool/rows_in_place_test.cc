// Tests that large values of a local file are read in place on the whole path from Arrow batch to
// reader, and that the rows equal copied ones.
#include <gmock/gmock.h>

#include <cstring>
#include <thread>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/arrow_export.h"
#include "hearth/batch/arrow_image.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/batch/batch_view.h"
#include "hearth/batch/row_hash.h"
#include "hearth/batch/spilled_batches.h"
#include "hearth/batch/testing/batch_testing.h"
#include "hearth/dataset/spool/minibatch.h"
#include "hearth/dataset/spool/spool_source.h"
#include "hearth/formats/testing/mapped_file_testing.h"
#include "hearth/ring/ring_writer.h"
#include "hearth/ring/testing/ring_testing.h"

namespace hearth::dataset {
namespace {

using batch::BatchBuilder;
using batch::BatchView;
using batch::ColumnType;
using batch::HashRows;
using batch::ImageFile;
using batch::ImageNode;
using batch::ResidentFileBytes;
using batch::TestImage;
using formats::ValuesInFile;
using ring::CreateRing;
using ring::RingEnds;
using ring::RingWriter;
using ring::WriteRows;
using ::testing::HasSubstr;

constexpr size_t kLarge = 40'000;

std::vector<size_t> LargeSizes(size_t count) {
  std::vector<size_t> sizes;
  for (size_t i = 0; i < count; ++i) sizes.push_back(kLarge + i);
  return sizes;
}

std::vector<int32_t> NumbersFor(const std::vector<std::string_view>& values) {
  std::vector<int32_t> numbers(values.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

BatchBuilder& FillViews(BatchBuilder& rows, const std::vector<std::string_view>& values,
                        const BatchBuilder::Nulls& nulls = {}) {
  return rows.AddInt32("n", NumbersFor(values)).AddBinaryViews("v", values, nulls);
}

std::shared_ptr<const BatchView> CopiedRows(const std::vector<std::string_view>& values,
                                            const BatchBuilder::Nulls& nulls = {}) {
  const std::vector<std::string> copies(values.begin(), values.end());
  BatchBuilder rows;
  return rows.AddInt32("n", NumbersFor(values)).AddBinary("v", copies, nulls).Build();
}

ColumnType TypeOfViews(const std::vector<std::string_view>& values) {
  BatchBuilder rows;
  return FillViews(rows, values).Build()->column("v").type();
}

TEST(RowsInPlace, ImageRefersToLargeValues) {
  const ValuesInFile file(LargeSizes(100));
  BatchBuilder rows;
  BatchBuilder::Nulls nulls(100);
  nulls[3] = nulls[99] = true;
  TestImage image(FillViews(rows, file.values(), nulls));
  EXPECT_LT(image.bytes().size(), 100 * 16 + 2000u);
  const BatchView batch(image.bytes());
  const batch::ColumnView& column = batch.column("v");
  EXPECT_EQ(column.type(), ColumnType::kFileBinary);
  for (int64_t row = 0; row < 100; ++row) {
    ASSERT_EQ(column.IsNull(row), row == 3 || row == 99);
    if (column.IsNull(row)) continue;
    ASSERT_EQ(column.Bytes(row), file.values()[static_cast<size_t>(row)]);
    ASSERT_EQ(column.AsText(row).size(), kLarge + static_cast<size_t>(row));
  }
  ASSERT_EQ(batch.files().size(), 1u);
  EXPECT_EQ(batch.files()[0], file.mapped());
  EXPECT_EQ(batch.file_bytes(), 100 * kLarge + 99 * 100 / 2 - 2 * kLarge - 3 - 99);
}

TEST(RowsInPlace, SmallValuesAndValuesOutsideFilesAreCopied) {
  const ValuesInFile large(LargeSizes(3)), small({100, 200, 15'000}), other({kLarge});
  EXPECT_EQ(TypeOfViews(large.values()), ColumnType::kFileBinary);
  EXPECT_EQ(TypeOfViews(small.values()), ColumnType::kBinary);
  EXPECT_EQ(TypeOfViews({}), ColumnType::kBinary);
  const std::string heap(kLarge, 'x');
  EXPECT_EQ(TypeOfViews({large.values()[0], heap}), ColumnType::kBinary);
  EXPECT_EQ(TypeOfViews({large.values()[0], other.values()[0]}), ColumnType::kBinary);
  EXPECT_EQ(TypeOfViews({large.values()[0], {}, large.values()[1]}), ColumnType::kFileBinary);
}

TEST(RowsInPlace, EverySliceHoldsItsOwnRows) {
  const ValuesInFile file(LargeSizes(20));
  BatchBuilder rows;
  BatchBuilder::Nulls nulls(20);
  nulls[7] = true;
  ArrowSchema schema;
  ArrowArray array;
  FillViews(rows, file.values(), nulls).Export(&schema, &array);
  const batch::ArrowImage image(schema, array);
  for (int64_t begin = 0; begin <= 20; ++begin) {
    for (int64_t count = 0; begin + count <= 20; ++count) {
      std::vector<uint64_t> words(image.ImageBytes(begin, count) / sizeof(uint64_t));
      const auto bytes = std::as_writable_bytes(std::span(words));
      image.Write(begin, count, bytes);
      const BatchView slice(bytes);
      for (int64_t row = 0; row < count; ++row) {
        if (slice.column("v").IsNull(row)) continue;
        ASSERT_EQ(slice.column("v").Bytes(row), file.values()[static_cast<size_t>(begin + row)]);
      }
    }
  }
}

TEST(RowsInPlace, AreExportedToArrowAsViews) {
  const ValuesInFile file(LargeSizes(3));
  BatchBuilder rows;
  const auto batch = FillViews(rows, file.values(), {false, true, false}).Build();
  ArrowSchema schema;
  ArrowArray array;
  batch::ExportBatch(batch, &schema, &array);
  EXPECT_EQ(std::string_view(schema.children[1]->format), "vz");
  const batch::ArrowImage image(schema, array);
  std::vector<uint64_t> words(image.ImageBytes(0, 3) / sizeof(uint64_t));
  const auto bytes = std::as_writable_bytes(std::span(words));
  image.Write(0, 3, bytes);
  EXPECT_EQ(BatchView(bytes).column("v").Bytes(2), file.values()[2]);
  EXPECT_TRUE(BatchView(bytes).column("v").IsNull(1));
  schema.release(&schema);
  array.release(&array);
}

TEST(RowsInPlace, HashEqualsThatOfCopies) {
  const ValuesInFile file(LargeSizes(5));
  const BatchBuilder::Nulls nulls = {false, false, true, false, false};
  BatchBuilder rows;
  const auto placed = FillViews(rows, file.values(), nulls).Build();
  const auto copied = CopiedRows(file.values(), nulls);
  ASSERT_EQ(copied->column("v").type(), ColumnType::kBinary);
  EXPECT_EQ(HashRows(0, placed->columns(), 5), HashRows(0, copied->columns(), 5));
  EXPECT_EQ(batch::HashBatch(0, *placed), batch::HashBatch(0, *copied));
}

// Corrupts an image with one file column after one numeric column.
class DamagedFileColumn : public ::testing::Test {
 protected:
  DamagedFileColumn() : file_(LargeSizes(3)), image_(FillViews(rows_, file_.values())) {
    std::memcpy(&node_, image_.bytes().data() + kNode, sizeof(node_));
    file_.Forget();
  }

  template <typename T>
  std::string RefusedWith(size_t offset, T value) {
    std::byte* at = image_.bytes().data() + offset;
    T before;
    std::memcpy(&before, at, sizeof(T));
    std::memcpy(at, &value, sizeof(T));
    const Error error = Thrown([&] { BatchView batch(image_.bytes()); });
    std::memcpy(at, &before, sizeof(T));
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    return error.message();
  }

  static constexpr size_t kNode = sizeof(batch::ImageHeader) + sizeof(ImageNode);
  ValuesInFile file_;
  BatchBuilder rows_;
  TestImage image_;
  ImageNode node_;
};

TEST_F(DamagedFileColumn, ValidLocationsAreAccepted) {
  EXPECT_EQ(BatchView(image_.bytes()).column("v").Bytes(1), std::string(kLarge + 1, 'b'));
}

TEST_F(DamagedFileColumn, LocationsOutsideTheFileAreRejected) {
  const std::string said = "are outside its file of";
  const size_t second = node_.data + sizeof(batch::FileLocation);
  const uint64_t bytes = 4 + 3 * kLarge + 3;
  EXPECT_THAT(RefusedWith(second, bytes - kLarge), HasSubstr(said));
  EXPECT_THAT(RefusedWith(second, ~uint64_t{0}), HasSubstr(said));
  EXPECT_THAT(RefusedWith(second + 8, bytes), HasSubstr(said));
  EXPECT_THAT(RefusedWith(second + 8, ~uint64_t{0} - kLarge), HasSubstr(said));
}

TEST_F(DamagedFileColumn, MissingFileOrTableIsRejected) {
  EXPECT_THAT(RefusedWith<uint64_t>(kNode + offsetof(ImageNode, offsets), 0), HasSubstr("no file"));
  EXPECT_THAT(RefusedWith<uint64_t>(kNode + offsetof(ImageNode, data), 0),
              HasSubstr("no locations"));
  EXPECT_THAT(RefusedWith<uint64_t>(kNode + offsetof(ImageNode, data_bytes), 47),
              HasSubstr("47 bytes of locations for 3 values"));
  EXPECT_THAT(RefusedWith<uint64_t>(kNode + offsetof(ImageNode, data_bytes), 1 << 20),
              HasSubstr("is outside"));
  EXPECT_THAT(RefusedWith<uint32_t>(kNode + offsetof(ImageNode, children), 1),
              HasSubstr("damaged"));
  const size_t path_bytes = node_.offsets + offsetof(ImageFile, path_bytes);
  EXPECT_THAT(RefusedWith<uint64_t>(path_bytes, ~0ull), HasSubstr("and a path of"));
  EXPECT_THAT(RefusedWith<uint64_t>(path_bytes, image_.bytes().size()), HasSubstr("is outside"));
  EXPECT_THAT(RefusedWith<uint64_t>(path_bytes, 0), HasSubstr("has no absolute path"));
  EXPECT_THAT(RefusedWith<uint64_t>(node_.offsets, 0), HasSubstr("has 0 bytes"));
  EXPECT_THAT(RefusedWith<char>(node_.offsets + sizeof(ImageFile), 'x'),
              HasSubstr("has no absolute path"));
  EXPECT_THAT(RefusedWith<char>(node_.offsets + sizeof(ImageFile) + 1, '\0'),
              HasSubstr("has no absolute path"));
}

TEST_F(DamagedFileColumn, TruncatedOrModifiedFileIsRejected) {
  const Error written = Thrown([&] {
    file_.Change();
    BatchView batch(image_.bytes());
  });
  EXPECT_THAT(written.message(), HasSubstr("was modified meanwhile"));
  std::filesystem::resize_file(file_.path(), 100);
  const Error cut = Thrown([&] { BatchView batch(image_.bytes()); });
  EXPECT_THAT(cut.message(), HasSubstr("has 100 bytes instead of"));
}

// A spool of some batches of large values whose feeder has exited.
std::shared_ptr<Spool> SpoolOfFileValues(const std::vector<std::string_view>& values,
                                         size_t at_once) {
  RingEnds ends = CreateRing(64 << 10);
  auto spool =
      std::make_shared<Spool>(std::move(ends.reader), SpoolOptions{::testing::TempDir(), 10});
  RingWriter writer(std::move(ends.writer));
  for (size_t begin = 0; begin < values.size(); begin += at_once) {
    BatchBuilder rows;
    const std::vector<std::string_view> some(
        values.begin() + static_cast<std::ptrdiff_t>(begin),
        values.begin() + static_cast<std::ptrdiff_t>(std::min(values.size(), begin + at_once)));
    EXPECT_TRUE(WriteRows(writer, FillViews(rows, some)));
  }
  writer.WriteEnd(Soon());
  spool->WaitComplete();
  return spool;
}

TEST(RowsInPlace, AllEpochsReadThemThroughARingSmallerThanAValue) {
  ValuesInFile file({100'000, 90'000, 80'000, 110'000, 120'000});
  const auto spool = SpoolOfFileValues(file.values(), 2);
  file.Forget();
  SpoolSource source(spool, {true, 1});
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::pair<char, size_t>> seen;
    Minibatch minibatch;
    while (source.Next(2, &minibatch) > 0) {
      for (const auto& row : minibatch.rows) {
        const std::string_view value = row.batch->column("v").Bytes(row.index);
        EXPECT_EQ(value.find_first_not_of(value[0]), std::string_view::npos);
        seen.emplace_back(value[0], value.size());
      }
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen,
              (std::vector<std::pair<char, size_t>>{
                  {'a', 100'000}, {'b', 90'000}, {'c', 80'000}, {'d', 110'000}, {'e', 120'000}}));
    source.NextEpoch();
  }
}

TEST(RowsInPlace, SpoolDigestsEqualThoseOfCopies) {
  const ValuesInFile file(LargeSizes(7));
  const auto spool = SpoolOfFileValues(file.values(), 2);
  uint64_t whole = 0;
  for (size_t begin = 0; begin < 7; begin += 2) {
    const auto end = std::min<size_t>(7, begin + 2);
    const auto batch = CopiedRows({file.values().begin() + static_cast<std::ptrdiff_t>(begin),
                                   file.values().begin() + static_cast<std::ptrdiff_t>(end)});
    for (int64_t rows = 1; rows <= batch->rows(); ++rows) {
      const auto digest = spool->DigestOf(static_cast<int64_t>(begin) + rows);
      EXPECT_EQ(digest.hash, HashRows(whole, batch->columns(), rows));
      EXPECT_EQ(spool->DigestUpTo(spool->RowAt(static_cast<int64_t>(begin) + rows - 1)).hash,
                digest.hash);
    }
    whole = HashRows(whole, batch->columns(), batch->rows());
  }
  EXPECT_EQ(spool->DigestOf(1000).hash, whole);
}

TEST(RowsInPlace, AreHashedWhileTheFeederIsIdle) {
  constexpr int64_t kBytes = 1 << 20;
  const ValuesInFile file(std::vector<size_t>(8, kBytes));
  RingEnds ends = CreateRing(64 << 10);
  RingWriter writer(std::move(ends.writer));
  const Spool spool(std::move(ends.reader), {::testing::TempDir(), 10});
  file.mapped()->DropPages();
  const int64_t before = ResidentFileBytes();
  for (const std::string_view value : file.values()) {
    BatchBuilder rows;
    EXPECT_TRUE(WriteRows(writer, FillViews(rows, {value})));
  }
  writer.WriteFlush(Soon());
  const Deadline deadline = Soon();
  while (ResidentFileBytes() - before < 7 * kBytes && !deadline.expired())
    std::this_thread::yield();
  EXPECT_GE(ResidentFileBytes() - before, 7 * kBytes);  // no other code has read them
  writer.WriteEnd(Soon());
}

TEST(RowsInPlace, FeederDeathIsReportedBeforeTheyAreHashed) {
  constexpr int64_t kBytes = 1 << 20;
  const ValuesInFile file(std::vector<size_t>(8, kBytes));
  RingEnds ends = CreateRing(64 << 10);
  {
    RingWriter writer(std::move(ends.writer));
    for (const std::string_view value : file.values()) {
      BatchBuilder rows;
      EXPECT_TRUE(WriteRows(writer, FillViews(rows, {value})));
    }
    writer.WriteFlush(Soon());
  }
  file.mapped()->DropPages();
  const int64_t before = ResidentFileBytes();
  Spool spool(std::move(ends.reader), {::testing::TempDir(), 10});
  EXPECT_EQ(Thrown([&] { spool.WaitComplete(); }).code(), ErrorCode::kUnavailable);
  EXPECT_LT(ResidentFileBytes() - before, kBytes);
}

TEST(RowsInPlace, FileModifiedBetweenEpochsIsAnError) {
  const ValuesInFile file(LargeSizes(3));
  SpoolSource source(SpoolOfFileValues(file.values(), 2), {true, 1});
  source.NextEpoch();
  file.Change();
  EXPECT_THAT(Thrown([&] { source.NextEpoch(); }).message(),
              HasSubstr(file.path() + " was modified"));
}

TEST(RowsInPlace, FileModifiedInTheLastEpochIsAnError) {
  const ValuesInFile file(LargeSizes(3));
  const auto spool = SpoolOfFileValues(file.values(), 2);
  SpoolSource source(spool, {true, 1});
  source.NextEpoch();
  Minibatch rows;
  EXPECT_EQ(source.Next(2, &rows), 2);
  file.Change();
  const auto is_reported = HasSubstr(file.path() + " was modified");
  EXPECT_THAT(Thrown([&] { source.Next(2, &rows); }).message(), is_reported);
  EXPECT_THAT(Thrown([&] { spool->DigestOf(1); }).message(), is_reported);
}

TEST(RowsInPlace, PagesAreDroppedLikeThoseOfTheSpillFile) {
  constexpr size_t kBytes = 1 << 20;
  const ValuesInFile file(std::vector<size_t>(32, kBytes));
  batch::SpilledBatches batches(::testing::TempDir(), 4 * kBytes);
  file.mapped()->DropPages();
  const int64_t before = ResidentFileBytes();
  int64_t most = 0, seen = 0;
  for (const std::string_view value : file.values()) {
    BatchBuilder rows;
    const BatchView& batch = batches.Append(TestImage(FillViews(rows, {value})).bytes());
    batches.CountTouched(batch.file_bytes());
    for (const char c : batch.column("v").Bytes(0)) seen += c == value[0];
    most = std::max(most, ResidentFileBytes() - before);
  }
  EXPECT_EQ(seen, static_cast<int64_t>(32 * kBytes));
  EXPECT_LT(most, 10 * static_cast<int64_t>(kBytes));
}

}  // namespace
}  // namespace hearth::dataset
