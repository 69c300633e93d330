// Test support of rings: writes rows into one.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/ring/ring_writer.h"

namespace hearth::ring {

inline bool WriteRows(RingWriter& writer, batch::BatchBuilder& rows, Deadline deadline = Soon()) {
  ArrowSchema schema;
  ArrowArray array;
  rows.Export(&schema, &array);
  return writer.WriteArrow(schema, array, deadline);
}

// Rows with one int32 column "n": first, first + 1, ...
inline bool WriteNumbers(RingWriter& writer, int32_t first, int32_t count,
                         Deadline deadline = Soon()) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), first);
  batch::BatchBuilder rows;
  rows.AddInt32("n", values);
  return WriteRows(writer, rows, deadline);
}

}  // namespace hearth::ring
