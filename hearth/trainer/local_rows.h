// Rows of Parquet files on their way to a local training: the reading children and their rings.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hearth/caffe/proto/messages.h"
#include "hearth/ring/ring.h"
#include "hearth/trainer/reader_process.h"

namespace hearth::trainer {

// Owns the children; destroy it after whoever reads the rows.
class LocalRows {
 public:
  // The reader's end of a ring with the rows of the net's fed layer; nothing where it has none.
  std::optional<ring::RingEnd> Open(const caffe::NetParameter& net);

 private:
  std::vector<std::unique_ptr<ReaderProcess>> readers_;
};

}  // namespace hearth::trainer
