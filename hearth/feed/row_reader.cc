#include "hearth/feed/row_reader.h"

#include <chrono>

#include "hearth/base/error.h"

namespace hearth::feed {

std::optional<Partition::Batch> RowReader::Next() {
  const auto before = std::chrono::steady_clock::now();
  auto batch = Read();
  queue_->rows().Wait(std::chrono::steady_clock::now() - before);
  return batch;
}

std::optional<Partition::Batch> RowReader::Read() {
  if (partition_ == nullptr) {
    partition_ = queue_->Next();
    ended_ = partition_ == nullptr;
    if (ended_) return std::nullopt;
  }
  std::optional<Partition::Batch> batch;
  try {
    batch = partition_->Read();
  } catch (const Error& error) {
    // kUnavailable: the feed task died. The program gets no error, because Spark retries the task.
    if (error.code() != ErrorCode::kUnavailable) throw;
    Lost();
    return std::nullopt;
  }
  if (!batch) {
    // Delivered rows count as taken, so a commit must cover them before the driver considers them
    // safe.
    queue_->rows().Complete(*partition_);
    if (held_ > 0) partition_->Settle(held_);  // batches in which no row ends
    Forget();
    return std::nullopt;
  }
  ++held_;
  if (partition_->spools()) queue_->Spooled(partition_->feed()).Add(batch->image, batch->format);
  if (!batch->format.pickled && !batch->image.empty()) {
    // Copied, because columns live as long as the program needs them, but the ring's space must be
    // released.
    batch->view = batch::CopyBatch(batch->image);
    batch->image = {};
    partition_->Release();
  }
  return batch;
}

void RowReader::Lost() {
  queue_->Check();  // throws if the partition ended because the cluster failed
  if (partition_->spools()) queue_->Spooled(partition_->feed()).Rollback();
  queue_->rows().Complete(*partition_);
  partition_->Lose();
  Forget();
}

void RowReader::Forget() {
  queue_->Done(partition_);
  partition_.reset();
  left_ = held_ = 0;
}

void RowReader::Opened(int64_t rows, bool within_row) {
  Require(partition_ != nullptr, ErrorCode::kInvalidArgument, "no batch has been read");
  partition_->Release();
  // A row that continues in the next batch is not delivered yet; if the task dies, it is sent
  // again.
  if (!within_row) {
    if (partition_->spools()) queue_->Spooled(partition_->feed()).Commit();
    partition_->NoteDelivered();
  }
  left_ = rows;
}

void RowReader::Give(int64_t count) {
  Require(partition_ != nullptr && 0 < count && count <= left_, ErrorCode::kInvalidArgument,
          "cannot deliver {} rows: {} are left", count, left_);
  queue_->rows().Take(*partition_, count);
  if (partition_->inference()) {
    // Called before Settle() below, so that the partition does not end before its results are
    // written.
    partition_->Hold(count);
    if (!pending_.empty() && pending_.back().partition == partition_) {
      pending_.back().rows += count;
    } else {
      pending_.push_back({partition_, count});
    }
  }
  left_ -= count;
  if (left_ == 0) partition_->Settle(std::exchange(held_, 0));
}

int64_t RowReader::pending_results() const {
  int64_t rows = 0;
  for (const PendingResults& pending : pending_) rows += pending.rows;
  return rows;
}

bool RowReader::WriteResults(const batch::ChunksImage& rows) {
  Require(!pending_.empty(), ErrorCode::kInvalidArgument, "no results are pending");
  try {
    pending_.front().partition->WriteResults(rows);
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable && error.code() != ErrorCode::kAborted) throw;
    queue_->Check();
    return false;
  }
}

void RowReader::Answered(int64_t count) {
  Require(0 < count && count <= pending_in_first(), ErrorCode::kInvalidArgument,
          "got {} results, but only {} are pending", count, pending_in_first());
  const std::shared_ptr<Partition> partition = pending_.front().partition;
  pending_.front().rows -= count;
  if (pending_.front().rows == 0) pending_.pop_front();
  partition->Settle(count);
}

}  // namespace hearth::feed
