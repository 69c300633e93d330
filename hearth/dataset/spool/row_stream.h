// Interface of a process's row stream, whether it is spooled or sent again in each epoch.
#pragma once

#include <cstdint>

#include "hearth/dataset/spool/minibatch.h"

namespace hearth::dataset {

// The rows that a feeder sends to this process. Thread-safe. DigestOf and DigestUpTo wait for the
// rows and throw the errors of MinibatchSource.
class RowStream {
 public:
  virtual ~RowStream() = default;

  // A number of rows and the hash that identifies them. If `rows` is 0, the rows were not counted,
  // and the hash identifies the whole stream.
  struct Digest {
    int64_t rows;
    uint64_t hash;
  };
  // Digest of the first `rows` rows, or of all if there are fewer.
  virtual Digest DigestOf(int64_t rows) = 0;
  // Digest of the rows up to and including this one, which must be a row of the stream.
  virtual Digest DigestUpTo(const Minibatch::Row& row) = 0;

  // Sets the first epoch from which rows are read; only the first call has an effect.
  virtual void BeginAt(int64_t epoch) = 0;

  // No more rows are needed: ends every wait with kAborted.
  virtual void Stop() = 0;
};

}  // namespace hearth::dataset
