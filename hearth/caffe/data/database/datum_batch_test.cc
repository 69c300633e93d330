#include "hearth/caffe/data/database/datum_batch.h"

#include <gmock/gmock.h>

#include <map>

#include "hearth/caffe/data/database/testing/datum_testing.h"
#include "hearth/caffe/proto/wire_writer.h"

namespace hearth::caffe {
namespace {

// A cursor over records in memory; keeps_values() is selectable.
class RecordsInMemory : public DatabaseCursor {
 public:
  explicit RecordsInMemory(bool keeps) : keeps_(keeps) {}
  void SeekToFirst() override {}
  void Seek(std::string_view) override {}
  void Next() override {}
  bool valid() const override { return false; }
  bool keeps_values() const override { return keeps_; }
  std::string_view key() const override { return {}; }
  std::string_view value() const override { return {}; }

 private:
  const bool keeps_;
};

std::string DatumField(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

std::string DatumNumber(int number, int value) {
  return {static_cast<char>(number << 3), static_cast<char>(value)};
}

std::shared_ptr<const batch::BatchView> RowsOfRecords(const std::vector<std::string>& records,
                                                      bool keeps = true) {
  auto batch = std::make_shared<DatumBatch>(std::make_shared<RecordsInMemory>(keeps));
  for (const std::string& record : records) batch->Add("key", record);
  return ViewOf(batch);
}

const std::string kDatumSize = DatumNumber(1, 3) + DatumNumber(2, 4) + DatumNumber(3, 5);

TEST(DatumBatch, FieldsMayBeInAnyOrder) {
  const std::string data(100, 'x'), label = DatumNumber(5, 7), encoded = DatumNumber(7, 1);
  const auto rows =
      RowsOfRecords({kDatumSize + DatumField(4, data) + label + encoded,
                     label + encoded + kDatumSize + DatumField(4, data),
                     DatumField(4, data) + encoded + label + kDatumSize,
                     DatumField(15, "unknown") + kDatumSize + label + encoded + DatumField(4, data),
                     kDatumSize + DatumField(4, "first") + label + DatumField(4, data) + encoded});
  for (int64_t row = 0; row < rows->rows(); ++row) {
    EXPECT_EQ(rows->column("data").Bytes(row), data) << row;
    EXPECT_EQ(rows->column("label").AsInt64(row), 7) << row;
    EXPECT_EQ(rows->column("channels").AsInt64(row), 3) << row;
    EXPECT_EQ(rows->column("height").AsInt64(row), 4) << row;
    EXPECT_EQ(rows->column("width").AsInt64(row), 5) << row;
    EXPECT_EQ(rows->column("encoded").AsInt64(row), 1) << row;
  }
}

TEST(DatumBatch, DataCanBeEmptyMissingOrInvalid) {
  const auto rows = RowsOfRecords(
      {kDatumSize + DatumField(4, ""), kDatumSize, DatumField(4, "abc").substr(0, 4),
       kDatumSize + DatumField(4, "abc") + "\x2d",
       kDatumSize + DatumField(4, "abc") + DatumField(4, ""), std::string("\x08", 1), ""});
  const std::vector<bool> no_data = {false, true, true, true, false, true, true};
  const std::vector<bool> damaged = {false, false, true, true, false, true, false};
  for (int64_t row = 0; row < rows->rows(); ++row) {
    const auto at = static_cast<size_t>(row);
    EXPECT_EQ(rows->column("data").IsNull(row), no_data[at]) << row;
    EXPECT_EQ(rows->column("label").IsNull(row), damaged[at]) << row;
    if (no_data[at]) continue;
    EXPECT_EQ(rows->column("data").Bytes(row), "") << row;
  }
}

TEST(DatumBatch, ReferencesDataThatTheRecordsKeep) {
  const std::string record = kDatumSize + DatumField(4, std::string(100, 'x'));
  for (const bool keeps : {true, false}) {
    auto batch = std::make_shared<DatumBatch>(std::make_shared<RecordsInMemory>(keeps));
    batch->Add("key", record);
    ArrowSchema schema;
    ArrowArray array;
    DatumBatch::Export(batch, &schema, &array);
    const auto* at = static_cast<const char*>(array.children[6]->buffers[2]);
    EXPECT_EQ(at >= record.data() && at < record.data() + record.size(), keeps);
    schema.release(&schema);
    array.release(&array);
  }
}

TEST(DatumBatch, ExportedBatchesOwnTheRecordsUntilTheirLastColumnIsReleased) {
  auto records = std::make_shared<RecordsInMemory>(true);
  const std::weak_ptr<RecordsInMemory> watched = records;
  const std::string record = kDatumSize + DatumField(4, std::string(100, 'x'));
  ArrowSchema schema;
  ArrowArray array;
  {
    auto batch = std::make_shared<DatumBatch>(std::move(records));
    batch->Add("key", record);
    DatumBatch::Export(batch, &schema, &array);
  }
  schema.release(&schema);
  ArrowArray moved = *array.children[6];
  array.children[6]->release = nullptr;
  array.release(&array);
  EXPECT_EQ(array.release, nullptr);
  ASSERT_FALSE(watched.expired());
  EXPECT_EQ(static_cast<const char*>(moved.buffers[2])[99], 'x');
  moved.release(&moved);
  EXPECT_TRUE(watched.expired());
}

TEST(DatumBatch, InvalidUtf8KeysAreShownAsBytes) {
  EXPECT_EQ(TextOfKey("00000001_cat.jpg"), "00000001_cat.jpg");
  EXPECT_EQ(TextOfKey(std::string_view("\xff\0", 2)), "ff00");
}

}  // namespace
}  // namespace hearth::caffe
