#include "hearth/dataset/partition_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/batch/batch_image.h"
#include "hearth/batch/row_hash.h"
#include "hearth/dataset/partition_rows.h"

namespace hearth::dataset {
namespace {

// Size of the parts in which an image is transferred. Each part has a separate deadline, so that a
// receiver that is slow to read a large image is not considered dead.
constexpr size_t kPart = size_t{1} << 20;
// Limit of the receiver's resident mapped bytes.
constexpr uint64_t kReceiverResident = uint64_t{32} << 20;

// Receives the images of one partition and writes them to a file.
class Receiver {
 public:
  Receiver(Connection& connection, Fd file, double timeout_s)
      : connection_(connection),
        timeout_s_(timeout_s),
        // rows_ and file_ have separate descriptors of the file, because each closes its own.
        rows_(0, 0, Duplicate(file.get())),
        file_(std::move(file)),
        part_(kPart) {}

  // Returns false at the partition's end.
  bool Next() {
    uint64_t bytes = 0;
    Read(&bytes, sizeof(bytes));
    if (bytes == 0) {
      file_.Close();
      return false;
    }
    batch::ImageHeader header;
    Require(bytes >= sizeof(header) && bytes <= kMaxImageBytes, ErrorCode::kDataLoss,
            "{} announced an image of {} bytes; that process is faulty or runs another version of "
            "Hearth",
            connection_.peer(), bytes);
    // Checked before the rest is received, so that a wrong length cannot fill the disk.
    Read(&header, sizeof(header));
    Require(header.bytes == bytes && header.rows <= INT32_MAX, ErrorCode::kDataLoss,
            "{} sent an image of {} bytes whose header has {} bytes and {} rows",
            connection_.peer(), bytes, header.bytes, header.rows);
    file_.Write(std::as_bytes(std::span(&header, 1)));
    for (uint64_t left = bytes - sizeof(header); left > 0;) {
      const auto part = static_cast<size_t>(std::min<uint64_t>(left, part_.size()));
      Read(part_.data(), part);
      file_.Write(std::span(part_).first(part));
      left -= part;
    }
    file_.EndImage();
    Commit(static_cast<int64_t>(header.rows));
    return true;
  }

  const ReceivedPartition& received() const { return received_; }

 private:
  void Read(void* data, size_t size) {
    auto* bytes = static_cast<std::byte*>(data);
    while (size > 0) {
      const size_t got = connection_.ReadSome(bytes, size, Deadline::After(timeout_s_));
      Require(got > 0, ErrorCode::kUnavailable,
              "{} closed the connection before it sent all rows of a partition",
              connection_.peer());
      bytes += got;
      size -= got;
    }
  }

  // Validates and hashes the image as a later reader would, while its pages are still in memory.
  void Commit(int64_t rows) {
    const Committed committed = {file_.bytes(), received_.committed.rows + rows};
    for (const batch::BatchView& batch : rows_.ReadTo(committed)) {
      Require(batch.files().empty(), ErrorCode::kDataLoss,
              "{} sent rows with values in a file of its host, which this host cannot read",
              connection_.peer());
      received_.hash = batch::HashRows(received_.hash, batch.columns(), batch.rows());
      touched_ += batch.image().size();
    }
    received_.committed = committed;
    if (touched_ <= kReceiverResident) return;
    touched_ = 0;
    rows_.DropPages();
  }

  Connection& connection_;
  const double timeout_s_;
  PartitionRows rows_;  // of the same file, to validate received images
  PartitionFile file_;
  std::vector<std::byte> part_;
  ReceivedPartition received_;
  uint64_t touched_ = 0;
};

}  // namespace

Committed PartitionSender::Write(const ArrowSchema& schema, const ArrowArray& array) {
  // Values in files are copied into the images (`false`), because the receiver's host does not have
  // this host's files.
  images_.Make(schema, array, false, [this](std::span<const std::byte> image) { Send(image); });
  return {bytes_, images_.rows()};
}

void PartitionSender::Send(std::span<const std::byte> image) {
  const uint64_t bytes = image.size();
  connection_.Write(&bytes, sizeof(bytes), Deadline::After(timeout_s_));
  for (size_t at = 0; at < image.size(); at += kPart) {
    const auto part = image.subspan(at, std::min(kPart, image.size() - at));
    connection_.Write(part.data(), part.size(), Deadline::After(timeout_s_));
  }
  bytes_ += batch::AlignImage(bytes);
}

void PartitionSender::End() {
  const uint64_t end = 0;
  connection_.Write(&end, sizeof(end), Deadline::After(timeout_s_));
}

ReceivedPartition ReceivePartition(Connection& connection, Fd file, double timeout_s,
                                   const std::function<void(const Committed&)>& on_commit) {
  Receiver receiver(connection, std::move(file), timeout_s);
  while (receiver.Next()) on_commit(receiver.received().committed);
  return receiver.received();
}

}  // namespace hearth::dataset
