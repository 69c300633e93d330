#include "hearth/dataset/order/epoch_order.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "hearth/base/error.h"

namespace hearth::dataset {
namespace {

// Rows in the first window. Small, because training cannot start before this window is complete:
// rows may be images, of which Spark produces only hundreds per second.
constexpr int64_t kFirstWindow = 64;
constexpr int kDoublings = 8;  // 64 << 8 = 16,384 rows
constexpr int64_t kLargestWindow = kFirstWindow << kDoublings;
// Windows double from 64 to 8,192 rows, 64 (2^8 - 1) rows in total; all later windows have 16,384.
constexpr int64_t kRowsBeforeLargest = kFirstWindow * ((1 << kDoublings) - 1);

// Hashes the complement of `epoch`, because two hashes of equal numbers would cancel out if the
// seed equals the epoch.
uint64_t EpochKey(uint64_t seed, int64_t epoch) {
  return MixBits(seed) ^ MixBits(~static_cast<uint64_t>(epoch));
}

}  // namespace

ShuffleMode ShuffleOf(std::string_view name) {
  if (name == "none") return ShuffleMode::kNone;
  if (name == "window") return ShuffleMode::kWindow;
  if (name == "full") return ShuffleMode::kFull;
  Throw(ErrorCode::kInvalidArgument, "unknown shuffle mode '{}'; choose none, window or full",
        name);
}

uint64_t RowSeed(uint64_t seed, int64_t epoch, int64_t partition, int64_t row) {
  const uint64_t key = EpochKey(seed, epoch) + static_cast<uint64_t>(partition);
  return MixBits(MixBits(key) + static_cast<uint64_t>(row));
}

EpochOrder::EpochOrder(ShuffleMode shuffle, uint64_t seed, int64_t epoch)
    : shuffle_(shuffle), seed_(seed), epoch_(epoch) {
  Require(epoch >= 0, ErrorCode::kInvalidArgument, "the epoch is {}; it must be at least 0", epoch);
}

EpochOrder::Window EpochOrder::WindowAt(int64_t position) {
  if (position >= kRowsBeforeLargest) {
    const int64_t number = (position - kRowsBeforeLargest) / kLargestWindow;
    const int64_t begin = kRowsBeforeLargest + number * kLargestWindow;
    return {number + kDoublings, begin, begin + kLargestWindow};
  }
  int64_t number = 0, begin = 0;
  while (position >= begin + (kFirstWindow << number)) begin += kFirstWindow << number++;
  return {number, begin, begin + (kFirstWindow << number)};
}

int64_t EpochOrder::RowsNeeded(int64_t position) const {
  if (shuffle_ == ShuffleMode::kNone) return position + 1;
  if (shuffle_ == ShuffleMode::kWindow && epoch_ == 0) return WindowAt(position).end;
  return std::numeric_limits<int64_t>::max();
}

int64_t EpochOrder::At(int64_t position, int64_t rows) {
  if (shuffle_ == ShuffleMode::kNone) return position;
  if (shuffle_ == ShuffleMode::kWindow && epoch_ == 0) return InFirstEpoch(position, rows);
  if (rows_ != rows) {
    rows_ = rows;
    if (shuffle_ == ShuffleMode::kFull) {
      permutation_.emplace(rows, EpochKey(seed_, epoch_));
    } else {
      blocks_.emplace(rows, seed_, static_cast<uint64_t>(epoch_));
    }
  }
  return permutation_ ? permutation_->At(position) : blocks_->At(position);
}

int64_t EpochOrder::InFirstEpoch(int64_t position, int64_t rows) {
  if (position < window_.begin || position >= window_.end) {
    Window window = WindowAt(position);
    // Cuts only the last window, because callers pass at least RowsNeeded(position) rows, or all.
    window.end = std::min(window.end, rows);
    window_order_.resize(static_cast<size_t>(window.end - window.begin));
    std::iota(window_order_.begin(), window_order_.end(), 0);
    Shuffle(MixBits(EpochKey(seed_, 0) + static_cast<uint64_t>(window.number)), &window_order_);
    window_ = window;
  }
  return window_.begin + window_order_[static_cast<size_t>(position - window_.begin)];
}

std::vector<bool> RowsBefore(int64_t count, int64_t rows, EpochOrder order) {
  std::vector<bool> before(static_cast<size_t>(rows));
  for (int64_t position = 0; position < std::min(count, rows); ++position) {
    before[static_cast<size_t>(order.At(position, rows))] = true;
  }
  return before;
}

}  // namespace hearth::dataset
