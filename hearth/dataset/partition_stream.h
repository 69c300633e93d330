// Sends a partition to another host as frames: a length (uint64, little-endian), then a batch
// image; length 0 ends the partition. The connection is already authenticated.
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

// Sending side of a partition's stream. One thread uses it; any thread may call Shutdown(). Throws
// kUnavailable if the receiver has closed the connection, kDeadlineExceeded if the receiver reads
// nothing for `timeout_s`; nothing may be sent after an error.
class PartitionSender {
 public:
  PartitionSender(Connection connection, double timeout_s)
      : connection_(std::move(connection)), timeout_s_(timeout_s) {}

  // Sends a record batch; returns the image bytes and rows sent so far. Also throws the errors of
  // ImageMaker::Make().
  Committed Write(const ArrowSchema& schema, const ArrowArray& array);
  // Sends the end marker; call after the last row. Throws the errors of Write().
  void End();
  uint64_t hash() const { return images_.hash(); }
  // Unblocks the sending thread.
  void Shutdown() noexcept { connection_.Shutdown(); }

 private:
  void Send(std::span<const std::byte> image);

  Connection connection_;
  double timeout_s_;
  ImageMaker images_;
  uint64_t bytes_ = 0;
};

// Size and hash of a partition that has arrived.
struct ReceivedPartition {
  Committed committed;
  uint64_t hash = 0;
};

// Writes the sender's images to the file, which must be empty, until the partition ends; calls
// `on_commit` after each complete image. Uses 1 MiB of memory. Throws kUnavailable if the
// connection ends before the partition, kDeadlineExceeded if nothing arrives for `timeout_s`,
// kDataLoss for a damaged image or one with values in a file, and any exception of `on_commit`.
ReceivedPartition ReceivePartition(Connection& connection, Fd file, double timeout_s,
                                   const std::function<void(const Committed&)>& on_commit);

}  // namespace hearth::dataset
