// A shuffled order of n numbers that needs no memory: a keyed permutation computed per position.
#pragma once

#include <array>
#include <cstdint>

namespace hearth::feed {

// Every input bit changes every output bit: makes keys and streams of random numbers from seeds.
uint64_t MixBits(uint64_t value);

// The same (size, key) give the same order everywhere. Immutable.
class Permutation {
 public:
  Permutation(int64_t size, uint64_t key);

  // Which number stands at `position`; a bijection of [0, size).
  int64_t At(int64_t position) const;

 private:
  static constexpr int kRounds = 6;

  uint64_t Permute(uint64_t value) const;

  uint64_t size_;
  int half_bits_;
  uint64_t half_mask_;
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace hearth::feed
