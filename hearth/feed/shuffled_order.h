// A shuffled order of n rows that needs no memory: a keyed permutation computed per position.
#pragma once

#include <array>
#include <cstdint>

namespace hearth::feed {

// The same (rows, seed, epoch) give the same order everywhere. Immutable.
class ShuffledOrder {
 public:
  ShuffledOrder(int64_t rows, uint64_t seed, uint64_t epoch);

  // Which row stands at `position`; a bijection of [0, rows).
  int64_t At(int64_t position) const;

 private:
  static constexpr int kRounds = 6;

  uint64_t Permute(uint64_t value) const;

  uint64_t rows_;
  int half_bits_;
  uint64_t half_mask_;
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace hearth::feed
