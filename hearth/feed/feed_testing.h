// What the feed's tests share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "hearth/base/error_testing.h"
#include "hearth/feed/arrow_image.h"
#include "hearth/feed/batch_builder.h"
#include "hearth/feed/minibatch.h"
#include "hearth/feed/ring_writer.h"

namespace hearth::feed {

inline Deadline Soon() { return Deadline::After(10); }

inline ErrorCode CodeOf(const std::function<void()>& call) { return Thrown(call).code(); }

inline bool WriteRows(RingWriter& writer, BatchBuilder& rows, Deadline deadline = Soon()) {
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
  BatchBuilder rows;
  rows.AddInt32("n", values);
  return WriteRows(writer, rows, deadline);
}

// Values of the column "n" in a minibatch.
inline std::vector<int64_t> NumbersIn(const Minibatch& minibatch) {
  std::vector<int64_t> numbers;
  for (const auto& row : minibatch.rows) {
    numbers.push_back(row.batch->column("n").AsInt64(row.index));
  }
  return numbers;
}

// All numbers of the epoch, minibatch after minibatch.
inline std::vector<int64_t> TakeEpoch(MinibatchSource& source, int64_t batch_size) {
  std::vector<int64_t> numbers;
  Minibatch minibatch;
  while (source.Next(batch_size, &minibatch) > 0) {
    for (int64_t number : NumbersIn(minibatch)) numbers.push_back(number);
  }
  return numbers;
}

inline std::vector<int64_t> UpTo(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

inline std::vector<int64_t> Sorted(std::vector<int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// Mapped file pages that count as this process's memory, in bytes.
inline int64_t ResidentFileBytes() {
  std::ifstream status("/proc/self/status");
  int64_t total = 0;
  for (std::string name; status >> name;) {
    int64_t kilobytes = 0;
    // Which of the two depends on the file system of the temporary directory.
    if (name == "RssFile:" || name == "RssShmem:") status >> kilobytes;
    total += kilobytes << 10;
  }
  return total;
}

// A batch image on the heap, aligned, for tests that damage it.
class TestImage {
 public:
  explicit TestImage(BatchBuilder& rows) {
    ArrowSchema schema;
    ArrowArray array;
    rows.Export(&schema, &array);
    const ArrowImage image(schema, array);
    words_.resize(image.ImageBytes(0, image.rows()) / sizeof(uint64_t));
    image.Write(0, image.rows(), bytes());
  }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words_)); }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace hearth::feed
