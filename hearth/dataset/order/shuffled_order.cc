#include "hearth/dataset/order/shuffled_order.h"

#include <algorithm>

namespace hearth::dataset {
ShuffledOrder::ShuffledOrder(int64_t rows, uint64_t seed, uint64_t epoch)
    : rows_(rows), key_(MixBits(seed) ^ MixBits(~epoch)), blocks_(rows / kBlockRows, key_) {}

void ShuffledOrder::MakeWindow(int64_t window) {
  window_ = window;
  order_.clear();
  const int64_t begin = window * kWindowRows;
  const int64_t end = std::min(rows_, begin + kWindowRows);
  for (int64_t at = begin; at < end; at += kBlockRows) {
    // The incomplete block at the end cannot be exchanged with a full one; its rows are shuffled
    // only within the last window.
    const bool full = at + kBlockRows <= rows_;
    const int64_t first = full ? blocks_.At(at / kBlockRows) * kBlockRows : at;
    for (int64_t i = 0; i < std::min(kBlockRows, end - at); ++i) order_.push_back(first + i);
  }
  // Seeds by the window's number, so that its order does not depend on earlier calls.
  Shuffle(MixBits(key_ + static_cast<uint64_t>(window)), &order_);
}

}  // namespace hearth::dataset
