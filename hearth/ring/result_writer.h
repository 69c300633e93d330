// Sends a trainer's results back to its feeder, as rows of an id and one list of floats per output.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/ring/ring_writer.h"

namespace hearth::ring {

// Buffers rows and writes them as batches. Used by one thread. Calls wait like those of RingWriter
// and throw the same errors; they return false once the reader needs no more rows.
class ResultWriter {
 public:
  // The columns are `id_column` (string) and one list<float> for each of `outputs`, in that order.
  ResultWriter(RingEnd ring, std::string id_column, const std::vector<std::string>& outputs);

  // `values` contains one list per output.
  bool Add(std::string_view id, const std::vector<std::span<const float>>& values,
           Deadline deadline);

  // Writes buffered rows, then a mark in response to the feeder's mark.
  bool Flush(Deadline deadline);
  bool End(Deadline deadline);

  RingWriter& ring() { return ring_; }

 private:
  // A column of buffered results.
  struct Output {
    std::string name;
    std::vector<float> values;
    std::vector<int32_t> offsets;
  };

  bool WriteRows(Deadline deadline);

  RingWriter ring_;
  std::string id_column_;
  std::vector<std::string> ids_;
  std::vector<Output> outputs_;
  size_t gathered_bytes_ = 0;
};

}  // namespace hearth::ring
