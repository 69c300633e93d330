// Test helpers for minibatch sources: rows of one column "n".
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "hearth/dataset/spool/minibatch.h"

namespace hearth::dataset {

// Values of the column "n" in a minibatch.
inline std::vector<int64_t> NumbersIn(const Minibatch& minibatch) {
  std::vector<int64_t> numbers;
  for (const auto& row : minibatch.rows) {
    numbers.push_back(row.batch->column("n").AsInt64(row.index));
  }
  return numbers;
}

inline constexpr size_t kMaxNumbers = 1'000'000;  // limit for an epoch in a test

// All numbers of the epoch, minibatch after minibatch. Throws if it does not end.
inline std::vector<int64_t> TakeEpoch(MinibatchSource& source, int64_t batch_size) {
  std::vector<int64_t> numbers;
  Minibatch minibatch;
  while (source.Next(batch_size, &minibatch) > 0) {
    for (int64_t number : NumbersIn(minibatch)) numbers.push_back(number);
    if (numbers.size() > kMaxNumbers) throw std::runtime_error("the epoch does not end");
  }
  return numbers;
}

inline std::vector<int64_t> UpTo(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

inline std::vector<int64_t> Sorted(std::vector<int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace hearth::dataset
