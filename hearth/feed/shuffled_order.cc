#include "hearth/feed/shuffled_order.h"

#include <algorithm>
#include <bit>

namespace hearth::feed {
namespace {

// The finalizer of SplitMix64: every input bit changes every output bit.
uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace

ShuffledOrder::ShuffledOrder(int64_t rows, uint64_t seed, uint64_t epoch)
    : rows_(static_cast<uint64_t>(rows)),
      // Two equal halves; at least 6 bits each, because a narrower network mixes few rows badly.
      half_bits_(std::max(6, (static_cast<int>(std::bit_width(rows_)) + 1) / 2)),
      half_mask_((uint64_t{1} << half_bits_) - 1) {
  uint64_t state = Mix(seed) ^ Mix(~epoch);
  for (uint64_t& key : keys_) key = (state = Mix(state)) | 1;
}

// A Feistel network permutes whatever its round function is, so a cheap one will do: the high bits
// of a product depend on all bits of both factors.
uint64_t ShuffledOrder::Permute(uint64_t value) const {
  uint64_t left = value >> half_bits_;
  uint64_t right = value & half_mask_;
  for (const uint64_t key : keys_) {
    const uint64_t mixed = left ^ ((right + 1) * key >> (64 - half_bits_));
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

// Positions that leave [0, rows) go round again: following a permutation's cycle from a row always
// comes back to some row, and to each from one only.
int64_t ShuffledOrder::At(int64_t position) const {
  auto value = static_cast<uint64_t>(position);
  do {
    value = Permute(value);
  } while (value >= rows_);
  return static_cast<int64_t>(value);
}

}  // namespace hearth::feed
