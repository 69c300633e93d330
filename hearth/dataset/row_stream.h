// What a process can say of the rows of its stream, whether it keeps them or has them sent again.
#pragma once

#include <cstdint>

#include "hearth/dataset/minibatch.h"

namespace hearth::dataset {

// Any thread may call.
class RowStream {
 public:
  virtual ~RowStream() = default;

  // The number of rows, and a hash by which they can be told from others. 0 rows: not counted, the
  // hash stands for all of the stream.
  struct Digest {
    int64_t rows;
    uint64_t hash;
  };
  // Of the first `rows` rows, or of all if there are fewer.
  virtual Digest DigestOf(int64_t rows) = 0;
  // The same for the rows up to and including this one, which must be a row of the stream.
  virtual Digest DigestUpTo(const Minibatch::Row& row) = 0;

  // Says, once, which epoch is the first that rows are taken of; later calls are ignored.
  virtual void BeginAt(int64_t epoch) = 0;

  // No more rows are wanted: ends every wait with kAborted.
  virtual void Stop() = 0;
};

}  // namespace hearth::dataset
