#include "hearth/dataset/order/permutation.h"

#include <algorithm>
#include <bit>

namespace hearth::dataset {

// The finalizer of SplitMix64.
uint64_t MixBits(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

Permutation::Permutation(int64_t size, uint64_t key)
    : size_(static_cast<uint64_t>(size)),
      // The network's two halves have equal widths of at least 6 bits, because a narrower network
      // mixes small ranges badly.
      half_bits_(std::max(6, (static_cast<int>(std::bit_width(size_)) + 1) / 2)),
      half_mask_((uint64_t{1} << half_bits_) - 1) {
  // Keys are odd, because multiplication by an even number would lose bits of the other half.
  for (uint64_t& round_key : keys_) round_key = (key = MixBits(key)) | 1;
}

// A Feistel network is a permutation for any round function, so a cheap one suffices: the high bits
// of a product depend on all bits of both factors.
uint64_t Permutation::Permute(uint64_t value) const {
  uint64_t left = value >> half_bits_;
  uint64_t right = value & half_mask_;
  for (const uint64_t key : keys_) {
    const uint64_t mixed = left ^ ((right + 1) * key >> (64 - half_bits_));
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

// Values outside [0, size) are permuted again (cycle walking). Each cycle of the permutation
// returns to [0, size), and each number in that range is reached from exactly one start.
int64_t Permutation::At(int64_t position) const {
  auto value = static_cast<uint64_t>(position);
  do {
    value = Permute(value);
  } while (value >= size_);
  return static_cast<int64_t>(value);
}

}  // namespace hearth::dataset
