#include "hearth/batch/row_hash.h"

#include <gtest/gtest.h>

#include <set>

#include "hearth/batch/arrow_image.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/batch/batch_view.h"

namespace hearth::batch {
namespace {

uint64_t HashOf(const BatchView& batch, uint64_t hash = 0) {
  return HashRows(hash, batch.columns(), batch.rows());
}

// Rows [begin, end) of a table in which every third string, fourth number and fifth list is null.
std::shared_ptr<const BatchView> Rows(int begin, int end, int other = -1) {
  std::vector<int32_t> numbers;
  std::vector<std::string> texts;
  std::vector<std::vector<float>> lists;
  BatchBuilder::Nulls no_number, no_text, no_list;
  for (int i = begin; i < end; ++i) {
    const int value = i == other ? -i : i;
    numbers.push_back(value);
    texts.emplace_back(static_cast<size_t>(i % 40), static_cast<char>('a' + i % 26));
    lists.emplace_back(static_cast<size_t>(i % 7), static_cast<float>(value));
    no_number.push_back(i % 4 == 3);
    no_text.push_back(i % 3 == 2);
    no_list.push_back(i % 5 == 4);
  }
  BatchBuilder rows;
  rows.AddInt32("n", numbers, no_number).AddString("t", texts, no_text);
  return rows.AddFloatList("l", lists, no_list).Build();
}

TEST(RowHash, DoesNotDependOnBatchBoundaries) {
  const uint64_t whole = HashOf(*Rows(0, 1000));
  for (const int size : {1, 2, 3, 7, 256, 257, 999}) {
    uint64_t hash = 0;
    for (int begin = 0; begin < 1000; begin += size) {
      hash = HashOf(*Rows(begin, std::min(1000, begin + size)), hash);
    }
    EXPECT_EQ(hash, whole) << "batches of " << size;
  }
}

TEST(RowHash, DiffersForEveryPrefixAndEveryChangedRow) {
  std::set<uint64_t> seen;
  const auto rows = Rows(0, 500);
  for (int64_t count = 0; count <= 500; ++count) {
    EXPECT_TRUE(seen.insert(HashRows(0, rows->columns(), count)).second) << count;
  }
  for (int other = 1; other < 500; ++other) {
    if (other % 4 == 3 && (other % 5 == 4 || other % 7 == 0)) continue;  // nulls, or an empty list
    EXPECT_TRUE(seen.insert(HashOf(*Rows(0, 500, other))).second) << other;
  }
}

// Small tables whose hashes could easily collide.
TEST(RowHash, DependsOnOrderNullsAndLengths) {
  using Lists = std::vector<std::vector<float>>;
  std::vector<std::shared_ptr<const BatchView>> tables = {
      BatchBuilder().AddInt32("n", {1, 2}).Build(),
      BatchBuilder().AddInt32("n", {2, 1}).Build(),
      BatchBuilder().AddInt32("n", {0, 0}).Build(),
      BatchBuilder().AddInt32("n", {0, 0}, {true, false}).Build(),
      BatchBuilder().AddInt32("n", {0, 0}, {false, true}).Build(),
      BatchBuilder().AddInt32("n", {0, 0}, {true, true}).Build(),
      BatchBuilder().AddInt32("a", {1}).AddInt32("b", {2}).Build(),
      BatchBuilder().AddInt32("a", {2}).AddInt32("b", {1}).Build(),
      BatchBuilder().AddFloatList("l", Lists{{1, 2}, {3}}).Build(),
      BatchBuilder().AddFloatList("l", Lists{{1}, {2, 3}}).Build(),
      BatchBuilder().AddFloatList("l", Lists{{}, {1}}).Build(),
      BatchBuilder().AddFloatList("l", Lists{{}, {1}}, {true, false}).Build(),
      BatchBuilder().AddString("t", {"ab", "c"}).Build(),
      BatchBuilder().AddString("t", {"a", "bc"}).Build(),
  };
  std::set<uint64_t> seen;
  for (const auto& table : tables) seen.insert(HashOf(*table));
  EXPECT_EQ(seen.size(), tables.size());
}

TEST(RowHash, DependsOnTheWidthOfNumbers) {
  std::set<uint64_t> seen;
  for (const int number : {0, 1, -1}) {
    EXPECT_TRUE(seen.insert(HashOf(*BatchBuilder().AddInt32("n", {number}).Build())).second);
    EXPECT_TRUE(seen.insert(HashOf(*BatchBuilder().AddInt64("n", {number}).Build())).second);
  }
}

// Checkpoints store these hashes: a change here must increment kRowHashVersion.
TEST(RowHash, ChangesOnlyWithItsVersion) {
  EXPECT_EQ(kRowHashVersion, 2);
  EXPECT_EQ(HashOf(*Rows(0, 1000)), 17502321736187531308u);
  EXPECT_EQ(HashBatch(0, *Rows(0, 1000)), 3163942551443625873u);
}

uint64_t HashOfNumbers(const std::string& name, const BatchBuilder::Nulls& nulls = {}) {
  return HashBatch(0, *BatchBuilder().AddInt32(name, {1, 2, 3}, nulls).Build());
}

TEST(BatchHash, DependsOnRowsNamesTypesAndBatchBoundaries) {
  const std::vector<std::string> texts = {"ab", "c"};
  const auto numbers = BatchBuilder().AddInt32("n", {1, 2, 3}).Build();
  const std::set<uint64_t> hashes = {
      HashBatch(0, *numbers),
      HashBatch(1, *numbers),
      HashBatch(HashBatch(0, *numbers), *numbers),
      HashBatch(0, *BatchBuilder().AddInt32("n", {1, 2, 3, 1, 2, 3}).Build()),
      HashOfNumbers("n", {false, true, false}),
      HashOfNumbers("n", {false, false, true}),
      HashOfNumbers("m"),
      HashOfNumbers("nn"),
      HashBatch(0, *BatchBuilder().AddInt32("n", {}).Build()),
      HashBatch(0, *BatchBuilder().AddInt64("n", {}).Build()),
      HashBatch(0, *BatchBuilder().AddInt32("n", {}).AddInt32("m", {}).Build()),
      HashBatch(0, *BatchBuilder().AddString("s", texts).Build()),
      HashBatch(0, *BatchBuilder().AddBinary("s", texts).Build()),
      HashBatch(0, *BatchBuilder().AddFloatList("l", {{1}}).Build()),
      HashBatch(0, *BatchBuilder().AddInt32List("l", {{0x3f800000}}).Build()),  // 1.0f
  };
  EXPECT_EQ(hashes.size(), 15u);
}

TEST(BatchHash, IgnoresBytesBetweenBuffers) {
  EXPECT_EQ(HashOfNumbers("n"), HashOfNumbers("n", {false, false, false}));
  // Gaps in a ring's image contain bytes of earlier entries.
  const auto hash = [](std::byte fill) {
    BatchBuilder rows;
    rows.AddInt32("n", {1, 2, 3}, {false, true, false}).AddString("s", {"a", "", "b"});
    ArrowSchema schema;
    ArrowArray array;
    rows.Export(&schema, &array);
    const ArrowImage image(schema, array);
    std::vector<std::byte> bytes(image.ImageBytes(0, 3), fill);
    image.Write(0, 3, bytes);
    return HashBatch(0, *CopyBatch(bytes));
  };
  EXPECT_EQ(hash(std::byte{0}), hash(std::byte{0xff}));
}

// After a shuffle, the bytes under a null may be arbitrary bytes of the sender's memory.
TEST(BatchHash, IgnoresBytesUnderANull) {
  const BatchBuilder::Nulls second = {false, true, false};
  const auto hash = [&](int32_t number, const std::string& text) {
    BatchBuilder rows;
    rows.AddInt32("n", {1, number, 3}, second).AddString("s", {"a", text, "b"}, second);
    return HashBatch(0, *rows.Build());
  };
  EXPECT_EQ(hash(2, "x"), hash(77, "y"));
  EXPECT_EQ(hash(2, "x"), hash(2, "other bytes"));
}

// Columns with a nesting that BatchBuilder does not support, built by hand.
class NestedColumns : public ::testing::Test {
 protected:
  static ColumnView Ints(const std::vector<int32_t>& values, const uint8_t* validity = nullptr) {
    const auto* data = reinterpret_cast<const uint8_t*>(values.data());
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(int32_t));
    return {"i",
            {ColumnType::kInt32, 0},
            static_cast<int64_t>(values.size()),
            {validity, nullptr, data, bytes},
            {}};
  }
  template <typename Offset>
  static ColumnView Lists(ColumnType type, const std::vector<Offset>& offsets, ColumnView items) {
    return {"l",
            {type, 0},
            static_cast<int64_t>(offsets.size()) - 1,
            {nullptr, offsets.data(), nullptr, 0},
            {std::move(items)}};
  }
  static uint64_t HashOf(const ColumnView& column) {
    return HashRows(0, {column}, column.length());
  }

  const std::vector<int32_t> values_ = {1, 2, 3, 4, 5, 6};
  const std::vector<int32_t> narrow_ = {0, 2, 2, 6};
  const std::vector<int64_t> wide_ = {0, 2, 2, 6};
};

TEST_F(NestedColumns, ListsOfBothWidthsAndOfFixedSizeAreEqualByContent) {
  const uint64_t hash = HashOf(Lists(ColumnType::kList, narrow_, Ints(values_)));
  EXPECT_EQ(HashOf(Lists(ColumnType::kLargeList, wide_, Ints(values_))), hash);
  const std::vector<int32_t> pairs = {0, 2, 4, 6};
  const ColumnView fixed("f", {ColumnType::kFixedSizeList, 2}, 3, {}, {Ints(values_)});
  EXPECT_EQ(HashOf(Lists(ColumnType::kList, pairs, Ints(values_))), HashOf(fixed));
  EXPECT_NE(HashOf(fixed), hash);
}

TEST_F(NestedColumns, ANullInOneListDoesNotChangeTheHashOfAnother) {
  const uint8_t all = 0b111111, not_the_fourth = 0b110111;
  const ColumnView bare = Lists(ColumnType::kList, narrow_, Ints(values_));
  const ColumnView none = Lists(ColumnType::kList, narrow_, Ints(values_, &all));
  const ColumnView one = Lists(ColumnType::kList, narrow_, Ints(values_, &not_the_fourth));
  EXPECT_EQ(HashOf(bare), HashOf(none));
  EXPECT_EQ(HashRows(0, {bare}, 2), HashRows(0, {one}, 2));
  EXPECT_NE(HashOf(bare), HashOf(one));
  std::vector<int32_t> hidden = values_;
  hidden[3] = 77;  // values under a null are ignored
  EXPECT_EQ(HashOf(one), HashOf(Lists(ColumnType::kList, narrow_, Ints(hidden, &not_the_fourth))));
}

TEST_F(NestedColumns, DependsOnStructsNestedListsAndBools) {
  const uint8_t second_is_null = 0b101, bits = 0b010, other_bits = 0b110;
  const auto structs = [](const uint8_t* validity, std::vector<ColumnView> children) {
    return ColumnView("s", {ColumnType::kStruct, 0}, 3, {validity, nullptr, nullptr, 0},
                      std::move(children));
  };
  const auto bools = [](const uint8_t* values) {
    return ColumnView("b", {ColumnType::kBool, 0}, 3, {nullptr, nullptr, values, 1}, {});
  };
  std::vector<int32_t> other = values_;
  other[1] = 77;
  const uint64_t plain = HashOf(structs(nullptr, {Ints(values_)}));
  EXPECT_NE(plain, HashOf(structs(nullptr, {Ints(other)})));
  const uint64_t with_null = HashOf(structs(&second_is_null, {Ints(values_)}));
  EXPECT_NE(plain, with_null);
  EXPECT_EQ(with_null, HashOf(structs(&second_is_null, {Ints(other)})));
  EXPECT_NE(HashOf(structs(nullptr, {bools(&bits)})),
            HashOf(structs(nullptr, {bools(&other_bits)})));

  const std::vector<int32_t> outer = {0, 1, 3}, other_outer = {0, 2, 3};
  const ColumnView inner = Lists(ColumnType::kList, narrow_, Ints(values_));
  const uint64_t nested = HashOf(Lists(ColumnType::kList, outer, inner));
  EXPECT_NE(nested, HashOf(Lists(ColumnType::kList, other_outer, inner)));
  const ColumnView changed = Lists(ColumnType::kList, narrow_, Ints(other));
  EXPECT_NE(nested, HashOf(Lists(ColumnType::kList, outer, changed)));
}

}  // namespace
}  // namespace hearth::batch
