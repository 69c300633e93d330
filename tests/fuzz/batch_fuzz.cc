// A batch of rows: its image in a ring (docs/format_batch.md), and Arrow's C structs of it.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "hearth/batch/arrow_export.h"
#include "hearth/batch/arrow_image.h"
#include "hearth/batch/batch_view.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

namespace {

constexpr int64_t kRowsRead = 64;

// Makes every call by which a layer may read a column.
void ReadValues(const batch::ColumnView& column, int64_t row) {
  std::vector<float> scratch;
  fuzz::Refusable([&] { column.AsDouble(row); });
  fuzz::Refusable([&] { column.AsText(row); });
  fuzz::Refusable([&] {
    unsigned sum = 0;
    for (const char byte : column.Bytes(row)) sum += static_cast<unsigned char>(byte);
    if (sum == 0xffffffff) std::abort();  // so that the reads are not optimized away
  });
  fuzz::Refusable([&] {
    float sum = 0;
    for (const float value : column.FloatList(row, &scratch)) sum += value;
    if (sum == 0.123456f) std::abort();
  });
  column.PrefetchEntry(row);
  column.PrefetchValue(row);
}

void ReadBatch(const batch::BatchView& batch) {
  for (const batch::ColumnView& column : batch.columns()) {
    for (int64_t row = 0; row < std::min(batch.rows(), kRowsRead); ++row) ReadValues(column, row);
    if (batch.rows() > 0) ReadValues(column, batch.rows() - 1);
  }
}

// Exports the batch as Arrow's structs, and writes these as an image again, which must be valid.
void ThroughArrow(const std::shared_ptr<const batch::BatchView>& batch) {
  ArrowSchema schema;
  ArrowArray array;
  batch::ExportBatch(batch, &schema, &array);
  fuzz::Refusable([&] {
    const batch::ArrowImage image(schema, array);
    const size_t bytes = image.ImageBytes(0, image.rows());
    std::vector<uint64_t> memory(bytes / 8 + 1);
    const std::span<std::byte> to(reinterpret_cast<std::byte*>(memory.data()), bytes);
    image.Write(0, image.rows(), to);
    ReadBatch(batch::BatchView(to));
  });
  schema.release(&schema);
  array.release(&array);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Refusable([&] {
    const auto batch = batch::CopyBatch({reinterpret_cast<const std::byte*>(data), size});
    ReadBatch(*batch);
    ThroughArrow(batch);
  });
  return 0;
}
