#include "hearth/batch/batch_view.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/batch/batch_image.h"
#include "hearth/batch/testing/batch_testing.h"

namespace hearth::batch {
namespace {

using ::testing::HasSubstr;

BatchBuilder& FillThreeRows(BatchBuilder& rows) {
  return rows.AddInt32("label", {1, 2, 3}, {false, true, false})
      .AddFloatList("data", {{1, 2}, {}, {3}})
      .AddString("id", {"a", "", "ccc"});
}

TEST(BatchView, FindsColumnsByNameAndByIndex) {
  BatchBuilder rows;
  const auto batch = FillThreeRows(rows).Build();
  EXPECT_EQ(batch->rows(), 3);
  EXPECT_EQ(batch->columns().size(), 3u);
  EXPECT_EQ(batch->columns()[2].name(), "id");
  EXPECT_EQ(batch->column("label").AsInt64(2), 3);
  EXPECT_EQ(batch->FindColumn("image"), nullptr);
  const Error error = Thrown([&] { batch->column("image"); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_EQ(error.message(), "the rows have no column 'image'; their columns are: label, data, id");
}

TEST(BatchView, BatchWithoutRowsOrColumnsIsValid) {
  EXPECT_EQ(BatchBuilder().AddString("id", {}).Build()->rows(), 0);
  EXPECT_EQ(BatchBuilder().Build()->columns().size(), 0u);
}

// Reads every value through every accessor.
int64_t SumOfAll(const ColumnView& column) {
  int64_t sum = static_cast<int64_t>(column.name().size());
  std::vector<float> scratch;
  for (int64_t row = 0; row < column.length(); ++row) {
    if (column.IsNull(row)) continue;
    try {
      if (IsBytes(column.type())) {
        for (char c : column.Bytes(row)) sum += c;
      } else if (column.type() != ColumnType::kStruct) {
        for (float value : column.FloatList(row, &scratch)) sum += value > 0;
      }
    } catch (const Error&) {
    }
  }
  for (const ColumnView& child : column.children()) sum += SumOfAll(child);
  return sum;
}

// Returns true if the image is rejected; otherwise reads everything in it.
bool Refused(std::span<const std::byte> image) {
  try {
    const BatchView batch(image);
    for (const ColumnView& column : batch.columns()) SumOfAll(column);
    return false;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << error.message();
    return true;
  }
}

class DamagedImage : public ::testing::Test {
 protected:
  DamagedImage() : image_(FillThreeRows(rows_)) {}

  template <typename T>
  bool RefusedWith(size_t offset, T value) {
    std::byte* at = image_.bytes().data() + offset;
    T before;
    std::memcpy(&before, at, sizeof(T));
    std::memcpy(at, &value, sizeof(T));
    const bool refused = Refused(image_.bytes());
    std::memcpy(at, &before, sizeof(T));
    return refused;
  }
  static size_t NodeAt(size_t node, size_t field) {
    return sizeof(ImageHeader) + node * sizeof(ImageNode) + field;
  }

  BatchBuilder rows_;
  TestImage image_;
};

TEST_F(DamagedImage, ValidImageIsAccepted) { EXPECT_FALSE(Refused(image_.bytes())); }

TEST_F(DamagedImage, TruncatedImageIsRejected) {
  for (size_t bytes = 0; bytes < image_.bytes().size(); ++bytes) {
    EXPECT_TRUE(Refused(image_.bytes().first(bytes))) << bytes;
  }
}

TEST_F(DamagedImage, WrongHeaderIsRejected) {
  EXPECT_TRUE(RefusedWith<uint32_t>(offsetof(ImageHeader, magic), 0));
  EXPECT_TRUE(RefusedWith<uint32_t>(offsetof(ImageHeader, version), 2));
  EXPECT_TRUE(RefusedWith<uint64_t>(offsetof(ImageHeader, bytes), 64));
  EXPECT_TRUE(RefusedWith<uint64_t>(offsetof(ImageHeader, rows), 4));
  EXPECT_TRUE(RefusedWith<uint64_t>(offsetof(ImageHeader, rows), ~0ull));
  EXPECT_TRUE(RefusedWith<uint32_t>(offsetof(ImageHeader, columns), 2));
  EXPECT_TRUE(RefusedWith<uint32_t>(offsetof(ImageHeader, columns), 5));
  EXPECT_TRUE(RefusedWith<uint32_t>(offsetof(ImageHeader, nodes), ~0u));
}

TEST_F(DamagedImage, BufferOutsideTheImageIsRejected) {
  for (const size_t field : {offsetof(ImageNode, offsets), offsetof(ImageNode, data)}) {
    for (const uint64_t value : {uint64_t{1} << 20, ~uint64_t{63}, uint64_t{8}}) {
      EXPECT_TRUE(RefusedWith<uint64_t>(NodeAt(3, field), value)) << field << " " << value;
    }
  }
  EXPECT_TRUE(RefusedWith<uint64_t>(NodeAt(0, offsetof(ImageNode, validity)), 1 << 20));
  EXPECT_TRUE(RefusedWith<uint64_t>(NodeAt(0, offsetof(ImageNode, data_bytes)), 8));
  EXPECT_TRUE(RefusedWith<uint64_t>(NodeAt(0, offsetof(ImageNode, data_bytes)), ~0ull));
  EXPECT_TRUE(RefusedWith<uint32_t>(NodeAt(0, offsetof(ImageNode, name_bytes)), ~0u));
}

TEST_F(DamagedImage, InvalidOffsetsAreRejected) {
  ImageNode node;
  std::memcpy(&node, image_.bytes().data() + NodeAt(1, 0), sizeof(node));
  EXPECT_TRUE(RefusedWith<int32_t>(node.offsets + 4, 3)) << "2 follows";
  EXPECT_TRUE(RefusedWith<int32_t>(node.offsets + 12, 1000));
  EXPECT_TRUE(RefusedWith<int32_t>(node.offsets, -1));
}

TEST_F(DamagedImage, NodesThatDoNotFormColumnsAreRejected) {
  EXPECT_TRUE(RefusedWith<uint32_t>(NodeAt(1, offsetof(ImageNode, children)), 0));
  EXPECT_TRUE(RefusedWith<uint32_t>(NodeAt(1, offsetof(ImageNode, children)), 2));
  EXPECT_TRUE(RefusedWith<uint32_t>(NodeAt(0, offsetof(ImageNode, children)), ~0u));
  EXPECT_TRUE(RefusedWith<uint32_t>(NodeAt(0, offsetof(ImageNode, type)), 99));
  EXPECT_TRUE(RefusedWith<uint64_t>(NodeAt(2, offsetof(ImageNode, length)), 1));
}

TEST_F(DamagedImage, RandomDamageNeverCausesReadsOutsideTheImage) {
  std::mt19937 random(7);
  const std::vector<std::byte> sound(image_.bytes().begin(), image_.bytes().end());
  for (int round = 0; round < 20'000; ++round) {
    for (int hits = 1 + static_cast<int>(random() % 3); hits > 0; --hits) {
      image_.bytes()[random() % sound.size()] = static_cast<std::byte>(random());
    }
    Refused(image_.bytes());
    std::memcpy(image_.bytes().data(), sound.data(), sound.size());
  }
}

}  // namespace
}  // namespace hearth::batch
