// Reads the rows of Parquet files for a local training, with child processes that write them to
// rings.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hearth/caffe/proto/messages.h"
#include "hearth/ring/ring.h"
#include "hearth/trainer/rows/reader_process.h"

namespace hearth::trainer {

// The child processes that read the files. Must be destroyed after the readers of the rings.
class LocalRows {
 public:
  // Returns the reader's end of a ring with the rows of the net's input layer, or nullopt if the
  // net has no input layer.
  std::optional<ring::RingEnd> Open(const caffe::NetParameter& net);

 private:
  std::vector<std::unique_ptr<ReaderProcess>> readers_;
};

}  // namespace hearth::trainer
