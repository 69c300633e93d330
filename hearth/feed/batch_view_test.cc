#include "hearth/feed/batch_view.h"
#include <gtest/gtest.h>
#include "hearth/feed/batch_builder.h"
#include "hearth/feed/memory_source.h"
namespace hearth::feed {
namespace {
TEST(BatchView, GivesTheValuesThatWereBuilt) {
  const auto batch = BatchBuilder()
                         .AddInt32("label", {1, 2, 3}, {false, true, false})
                         .AddFloatList("data", {{1, 2}, {}, {3}})
                         .AddString("id", {"a", "", "ccc"})
                         .Build();
  EXPECT_EQ(batch->rows(), 3);
  EXPECT_EQ(batch->column("label").AsInt64(2), 3);
  EXPECT_TRUE(batch->column("label").IsNull(1));
  EXPECT_EQ(batch->column("id").Bytes(2), "ccc");
  std::vector<float> scratch;
  EXPECT_EQ(batch->column("data").FloatList(0, &scratch)[1], 2.0f);
  EXPECT_EQ(batch->column("data").FloatList(1, &scratch).size(), 0u);
}
}  // namespace
}  // namespace hearth::feed
