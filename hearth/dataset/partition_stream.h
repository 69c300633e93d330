// A partition on its way to another host: frames of a length (uint64, little-endian) and a batch
// image; a length of 0 ends it. The connection is authenticated before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "hearth/base/deadline.h"
#include "hearth/base/fd.h"
#include "hearth/base/socket.h"
#include "hearth/dataset/partition_writer.h"

namespace hearth::dataset {

// One thread uses it; Shutdown() is for any. Throws kUnavailable when the receiver is gone,
// kDeadlineExceeded when it takes nothing for `timeout_s`; then nothing more may be sent.
class PartitionSender {
 public:
  PartitionSender(Connection connection, double timeout_s)
      : connection_(std::move(connection)), timeout_s_(timeout_s) {}

  // Sends a record batch; returns the bytes of images and the rows that were sent so far. Throws as
  // ImageMaker::Make(), too.
  Committed Write(const ArrowSchema& schema, const ArrowArray& array);
  // After the last row.
  void End();
  uint64_t hash() const { return images_.hash(); }
  // Ends a wait of another thread.
  void Shutdown() noexcept { connection_.Shutdown(); }

 private:
  void Send(std::span<const std::byte> image);

  Connection connection_;
  double timeout_s_;
  ImageMaker images_;
  uint64_t bytes_ = 0;
};

struct ReceivedPartition {
  Committed committed;
  uint64_t hash = 0;
};

// Writes what a sender sends into the file, which is empty at first, until it ends; calls
// `on_commit` with each image that is whole. Uses 1 MiB of memory. Throws kUnavailable where the
// connection ends before the partition, kDeadlineExceeded where nothing comes for `timeout_s`,
// kDataLoss for a damaged image or one with values in a file, and what `on_commit` throws.
ReceivedPartition ReceivePartition(Connection& connection, Fd file, double timeout_s,
                                   const std::function<void(const Committed&)>& on_commit);

}  // namespace hearth::dataset
