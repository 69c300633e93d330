// Test helpers for rings: both sides of a ring in one process.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/ring/ring_memory.h"
#include "hearth/ring/ring_reader.h"
#include "hearth/ring/ring_writer.h"

namespace hearth::ring {

inline bool WriteRows(RingWriter& writer, batch::BatchBuilder& rows, Deadline deadline = Soon()) {
  ArrowSchema schema;
  ArrowArray array;
  rows.Export(&schema, &array);
  return writer.WriteArrow(schema, array, deadline);
}

// Writes rows with one int32 column "n": first, first + 1, ...
inline bool WriteNumbers(RingWriter& writer, int32_t first, int32_t count,
                         Deadline deadline = Soon()) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), first);
  batch::BatchBuilder rows;
  rows.AddInt32("n", values);
  return WriteRows(writer, rows, deadline);
}

// Both sides of a ring in one process. To each side, the destruction of the other looks like the
// death of the other's process.
class RingTest : public ::testing::Test {
 protected:
  void Open(size_t capacity, size_t block = size_t{4} << 20) {
    RingEnds ends = CreateRing(capacity);
    memory_ = Duplicate(ends.writer.memory.get());
    writer_ = std::make_unique<RingWriter>(std::move(ends.writer), block);
    reader_ = std::make_unique<RingReader>(std::move(ends.reader));
  }

  bool Write(batch::BatchBuilder& rows) { return WriteRows(*writer_, rows); }
  bool WriteNumbers(int32_t first, int32_t count, Deadline deadline = Soon()) {
    return ring::WriteNumbers(*writer_, first, count, deadline);
  }

  Fd memory_;
  std::unique_ptr<RingWriter> writer_;
  std::unique_ptr<RingReader> reader_;
};

}  // namespace hearth::ring
