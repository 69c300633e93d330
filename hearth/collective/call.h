// What a rank is about to do: compared between ranks, and named in error messages.
#pragma once

#include <cstdint>
#include <string>

#include "hearth/collective/data_type.h"

namespace hearth::collective {

enum class Operation : uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kBarrier,
  kAllocate,
};

struct Call {
  Operation operation = Operation::kBarrier;
  DataType type = DataType::kFloat32;
  Op op = Op::kSum;
  int32_t root = 0;
  uint64_t bytes = 0;
  uint64_t place = 0;  // of the buffer in the arena, 0 for other memory

  bool operator==(const Call&) const = default;
  // "all-reduce of 4194304 bytes"
  std::string Describe() const;
};

}  // namespace hearth::collective
