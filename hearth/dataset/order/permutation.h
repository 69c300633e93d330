// Keyed permutation of n numbers. Computes each position without storing the permutation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hearth::dataset {

// Derives keys and random streams from seeds. Every input bit affects every output bit.
uint64_t MixBits(uint64_t value);

// A permutation of [0, size), the same on every machine for the same (size, key). Immutable.
class Permutation {
 public:
  Permutation(int64_t size, uint64_t key);

  // The number at `position`; a bijection of [0, size).
  int64_t At(int64_t position) const;

 private:
  static constexpr int kRounds = 6;

  uint64_t Permute(uint64_t value) const;

  uint64_t size_;
  int half_bits_;
  uint64_t half_mask_;
  std::array<uint64_t, kRounds> keys_;
};

// Shuffles a few thousand items. The order depends only on the key and the number of items, because
// the random numbers come from a counter.
template <typename T>
void Shuffle(uint64_t key, std::vector<T>* items) {
  for (size_t left = items->size(); left > 1; --left) {
    // The high half of a 32-bit random number times `left` is close enough to uniform for fewer
    // than 2^16 items.
    const uint64_t random = MixBits(key + left) >> 32;
    std::swap((*items)[left - 1], (*items)[random * left >> 32]);
  }
}

}  // namespace hearth::dataset
