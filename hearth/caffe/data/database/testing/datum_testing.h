// Test helpers for batches of Datum records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hearth/batch/arrow_image.h"
#include "hearth/batch/batch_view.h"
#include "hearth/caffe/data/database/datum_batch.h"

namespace hearth::caffe {

// The batch as imported by a receiver; null if it is empty.
inline std::shared_ptr<const batch::BatchView> ViewOf(
    const std::shared_ptr<const DatumBatch>& batch) {
  if (batch == nullptr) return nullptr;
  ArrowSchema schema;
  ArrowArray array;
  DatumBatch::Export(batch, &schema, &array);
  const batch::ArrowImage image(schema, array);
  std::vector<uint64_t> words(image.ImageBytes(0, image.rows()) / sizeof(uint64_t));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(words));
  image.Write(0, image.rows(), bytes);
  schema.release(&schema);
  array.release(&array);
  return batch::CopyBatch(bytes);
}

}  // namespace hearth::caffe
