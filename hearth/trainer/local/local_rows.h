// Rows of Parquet files for a local training: the child processes that read them and their rings.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hearth/caffe/proto/messages.h"
#include "hearth/ring/ring.h"
#include "hearth/trainer/rows/reader_process.h"

namespace hearth::trainer {

// Owns the children; destroy it after the readers of the rows.
class LocalRows {
 public:
  // The reader's end of a ring with the rows of the net's input layer; null if it has none.
  std::optional<ring::RingEnd> Open(const caffe::NetParameter& net);

 private:
  std::vector<std::unique_ptr<ReaderProcess>> readers_;
};

}  // namespace hearth::trainer
