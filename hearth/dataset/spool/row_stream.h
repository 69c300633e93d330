// Interface of a process's row stream, whether it is spooled or sent again in each epoch.
#pragma once

#include <cstdint>

#include "hearth/dataset/spool/minibatch.h"

namespace hearth::dataset {

// Thread-safe. The digests wait for the rows and throw as MinibatchSource does.
class RowStream {
 public:
  virtual ~RowStream() = default;

  // The number of rows and a hash that identifies them. 0 rows: not counted, the hash identifies
  // the whole stream.
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

  // Ends every wait with kAborted: no more rows are needed.
  virtual void Stop() = 0;
};

}  // namespace hearth::dataset
