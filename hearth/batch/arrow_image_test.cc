#include "hearth/batch/arrow_image.h"

#include <gmock/gmock.h>

#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/batch/batch_view.h"

namespace hearth::batch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const BatchView> ViewOf(const ArrowImage& image, int64_t begin, int64_t count) {
  std::vector<uint64_t> words(image.ImageBytes(begin, count) / sizeof(uint64_t));
  image.Write(begin, count, std::as_writable_bytes(std::span(words)));
  return CopyBatch(std::as_bytes(std::span(words)));
}

BatchBuilder& FillSample(BatchBuilder& rows, int32_t count) {
  std::vector<int32_t> numbers;
  std::vector<std::string> texts;
  std::vector<std::vector<float>> lists;
  BatchBuilder::Nulls nulls;
  for (int32_t i = 0; i < count; ++i) {
    numbers.push_back(i);
    texts.push_back(std::string(i % 5, 'a' + i % 26));
    lists.push_back(std::vector<float>(i % 3, static_cast<float>(i)));
    nulls.push_back(i % 7 == 3);
  }
  return rows.AddInt32("n", numbers, nulls).AddString("s", texts).AddFloatList("x", lists, nulls);
}

// Rows [begin, begin + count) of the sample.
void ExpectSample(const BatchView& batch, int64_t begin, int64_t count) {
  ASSERT_EQ(batch.rows(), count);
  std::vector<float> scratch;
  for (int64_t row = 0; row < count; ++row) {
    const int64_t i = begin + row;
    ASSERT_EQ(batch.column("n").IsNull(row), i % 7 == 3) << i;
    ASSERT_EQ(batch.column("x").IsNull(row), i % 7 == 3) << i;
    ASSERT_EQ(batch.column("s").Bytes(row), std::string(i % 5, 'a' + i % 26)) << i;
    if (i % 7 == 3) continue;
    ASSERT_EQ(batch.column("n").AsInt64(row), i);
    const auto list = batch.column("x").FloatList(row, &scratch);
    ASSERT_EQ(static_cast<int64_t>(list.size()), i % 3);
    for (float value : list) ASSERT_EQ(value, static_cast<float>(i));
  }
}

class ArrowImageTest : public ::testing::Test {
 protected:
  void Export(int32_t count) { FillSample(rows_, count).Export(&schema_, &array_); }

  BatchBuilder rows_;
  ArrowSchema schema_;
  ArrowArray array_;
};

TEST_F(ArrowImageTest, EverySliceHoldsItsOwnRowsOnly) {
  Export(40);
  const ArrowImage image(schema_, array_);
  for (int64_t begin = 0; begin <= 40; ++begin) {
    for (int64_t count = 0; begin + count <= 40; ++count) {
      ExpectSample(*ViewOf(image, begin, count), begin, count);
    }
  }
}

TEST_F(ArrowImageTest, OffsetsOfTheBatchAndOfItsColumnsAddUp) {
  Export(40);
  for (int64_t i = 0; i < array_.n_children; ++i) array_.children[i]->offset = 5;
  array_.offset = 6;
  array_.length = 29;
  ExpectSample(*ViewOf(ArrowImage(schema_, array_), 2, 20), 13, 20);
}

TEST_F(ArrowImageTest, FixedSizeListsBoolsAndStructsAreSlicedThroughTheirParents) {
  const std::vector<float> values = {0, 1, 2, 3, 4, 5, 6, 7};
  const uint8_t bits = 0b0110;
  const void* value_buffers[] = {nullptr, values.data()};
  const void* bit_buffers[] = {nullptr, &bits};
  const void* no_buffers[] = {nullptr};
  ArrowSchema item{"f", "item", nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr};
  ArrowSchema* item_list[] = {&item};
  ArrowSchema pair{"+w:2", "pair", nullptr, 0, 1, item_list, nullptr, nullptr, nullptr};
  ArrowSchema flag{"b", "flag", nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr};
  ArrowSchema* fields[] = {&pair, &flag};
  ArrowSchema row{"+s", "row", nullptr, 0, 2, fields, nullptr, nullptr, nullptr};
  ArrowSchema* columns[] = {&row};
  ArrowSchema schema{"+s", "", nullptr, 0, 1, columns, nullptr, nullptr, nullptr};
  const auto array = [](int64_t length, int64_t offset, const void** buffers, int64_t count,
                        ArrowArray** children) {
    return ArrowArray{length,  0,       offset,   buffers[0] == nullptr && children ? 1 : 2,
                      count,   buffers, children, nullptr,
                      nullptr, nullptr};
  };
  ArrowArray items = array(8, 0, value_buffers, 0, nullptr);
  ArrowArray* item_array[] = {&items};
  ArrowArray pairs = array(4, 0, no_buffers, 1, item_array);
  ArrowArray flags = array(4, 0, bit_buffers, 0, nullptr);
  ArrowArray* field_arrays[] = {&pairs, &flags};
  ArrowArray rows = array(3, 1, no_buffers, 2, field_arrays);
  ArrowArray* column_arrays[] = {&rows};
  ArrowArray batch = array(3, 0, no_buffers, 1, column_arrays);

  const auto view = ViewOf(ArrowImage(schema, batch), 1, 2);
  const ColumnView& column = view->column("row");
  std::vector<float> scratch;
  const auto list = column.FindChild("pair")->FloatList(0, &scratch);
  EXPECT_THAT(std::vector<float>(list.begin(), list.end()), ElementsAre(4, 5));
  EXPECT_EQ(column.FindChild("flag")->AsInt64(0), 1);
  EXPECT_EQ(column.FindChild("flag")->AsInt64(1), 0);
}

TEST_F(ArrowImageTest, RowsWithinIsTheLargestNumberThatFits) {
  Export(1000);
  const ArrowImage image(schema_, array_);
  for (const size_t limit : {1, 1000, 2000, 5000, 1'000'000}) {
    for (const int64_t begin : {0, 1, 999}) {
      const int64_t count = image.RowsWithin(begin, limit);
      ASSERT_GE(count, 1);
      if (count > 1) {
        EXPECT_LE(image.ImageBytes(begin, count), limit);
      }
      if (begin + count < 1000) {
        EXPECT_GT(image.ImageBytes(begin, count + 1), limit);
      }
    }
  }
}

TEST_F(ArrowImageTest, UnsupportedTypesNameTheColumnAndTheType) {
  const auto message = [&](const char* format) {
    Export(1);
    schema_.children[1]->format = format;
    const Error error = Thrown([&] { ArrowImage image(schema_, array_); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  };
  EXPECT_THAT(message("tsu:UTC"), HasSubstr("column 's' has Arrow type timestamp ('tsu:UTC')"));
  EXPECT_THAT(message("d:19,10"), HasSubstr("decimal ('d:19,10')"));
  EXPECT_THAT(message("e"), HasSubstr("float16"));
  EXPECT_THAT(message("+m"), HasSubstr("map"));
  EXPECT_THAT(message("odd"), HasSubstr("'odd'"));
}

TEST_F(ArrowImageTest, DictionariesAndPlainArraysAreRejected) {
  Export(1);
  ArrowSchema dictionary = {};
  schema_.children[1]->dictionary = &dictionary;
  EXPECT_THAT(Thrown([&] { ArrowImage image(schema_, array_); }).message(),
              HasSubstr("column 's' is dictionary-encoded"));
  EXPECT_THAT(
      Thrown([&] { ArrowImage image(*schema_.children[0], *array_.children[0]); }).message(),
      HasSubstr("a record batch is needed"));
}

TEST_F(ArrowImageTest, EmptyArraysMayLackBuffers) {
  Export(0);
  for (int64_t column : {1, 2}) array_.children[column]->buffers[1] = nullptr;
  EXPECT_EQ(ViewOf(ArrowImage(schema_, array_), 0, 0)->rows(), 0);
}

}  // namespace
}  // namespace hearth::batch
