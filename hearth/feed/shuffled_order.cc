#include "hearth/feed/shuffled_order.h"

#include <algorithm>
#include <utility>

namespace hearth::feed {
namespace {

// Orders the rows at random by the numbers of a counter-based generator: a window's order must not
// depend on which windows were made before.
void Shuffle(uint64_t key, std::vector<int64_t>* rows) {
  for (size_t left = rows->size(); left > 1; --left) {
    // The high half of a 32-bit random number times `left` is even enough below 2^16 rows.
    const uint64_t random = MixBits(key + left) >> 32;
    std::swap((*rows)[left - 1], (*rows)[random * left >> 32]);
  }
}

}  // namespace

ShuffledOrder::ShuffledOrder(int64_t rows, uint64_t seed, uint64_t epoch)
    : rows_(rows), key_(MixBits(seed) ^ MixBits(~epoch)), blocks_(rows / kBlockRows, key_) {}

void ShuffledOrder::MakeWindow(int64_t window) {
  window_ = window;
  order_.clear();
  const int64_t begin = window * kWindowRows;
  const int64_t end = std::min(rows_, begin + kWindowRows);
  for (int64_t at = begin; at < end; at += kBlockRows) {
    const bool full = at + kBlockRows <= rows_;
    const int64_t first = full ? blocks_.At(at / kBlockRows) * kBlockRows : at;
    for (int64_t i = 0; i < std::min(kBlockRows, end - at); ++i) order_.push_back(first + i);
  }
  Shuffle(MixBits(key_ + static_cast<uint64_t>(window)), &order_);
}

}  // namespace hearth::feed
