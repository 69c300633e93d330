#include "hearth/batch/arrow_export.h"

#include "hearth/batch/arrow_image.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/batch/batch_view.h"

namespace hearth::batch {
namespace {

TEST(ArrowExport, ExportedBatchesCanBeReadAgain) {
  auto batch = BatchBuilder()
                   .AddInt32("n", {1, 2}, {false, true})
                   .AddFloatList("x", {{1, 2}, {3}})
                   .AddString("s", {"a", ""})
                   .Build();
  const std::weak_ptr<const BatchView> watch = batch;
  ArrowSchema schema;
  ArrowArray array;
  ExportBatch(batch, &schema, &array);
  batch.reset();  // the structs keep the rows alive
  const ArrowImage image(schema, array);
  std::vector<uint64_t> words(image.ImageBytes(0, 2) / sizeof(uint64_t));
  image.Write(0, 2, std::as_writable_bytes(std::span(words)));
  const BatchView again(std::as_bytes(std::span(words)));
  EXPECT_EQ(again.column("n").AsInt64(0), 1);
  EXPECT_TRUE(again.column("n").IsNull(1));
  EXPECT_EQ(again.column("x").ListLength(0), 2);
  EXPECT_EQ(again.column("s").Bytes(0), "a");
  schema.release(&schema);
  array.release(&array);
  EXPECT_TRUE(watch.expired()) << "children are released with their parent";
}

TEST(ArrowExport, RowsLiveUntilMovedChildrenAreReleased) {
  auto batch = BatchBuilder().AddInt32("n", {41, 42}).Build();
  const std::weak_ptr<const BatchView> watch = batch;
  ArrowSchema schema;
  ArrowArray array;
  ExportBatch(batch, &schema, &array);
  batch.reset();
  // The interface allows moving a child out and then releasing its parent.
  ArrowArray child = *array.children[0];
  array.children[0]->release = nullptr;
  array.release(&array);
  schema.release(&schema);
  EXPECT_EQ(static_cast<const int32_t*>(child.buffers[1])[1], 42);
  EXPECT_FALSE(watch.expired());
  child.release(&child);
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace hearth::batch
