// What a rank is about to do: compared between ranks, and named in error messages.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "hearth/collective/data_type.h"

namespace hearth::collective {

enum class Operation : uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kBarrier,
  kAllocate,
  kAllToAll,
  kSend,
  kReceive,
};

// For errors of ranks that make different calls: what to do.
inline constexpr std::string_view kMatchAdvice =
    "all ranks must do the same in the same order, with uneven rows by in_step()";
// For errors of a rank that makes fewer calls.
inline constexpr std::string_view kStepsAdvice =
    "all ranks must take the same number of steps, with uneven rows by in_step()";

// Between two ranks; all others are of the whole group.
constexpr bool IsPair(Operation operation) {
  return operation == Operation::kSend || operation == Operation::kReceive;
}

// What float32 travels as between hosts.
enum class Wire : uint8_t { kFloat32, kFloat16, kBfloat16 };

// Whose memory the operation works on.
enum class Memory : uint8_t { kHost, kDevice };

// Sent as it is, so it has no padding.
struct Call {
  Operation operation = Operation::kBarrier;
  DataType type = DataType::kFloat32;
  Op op = Op::kSum;
  Wire wire = Wire::kFloat32;
  int32_t root = 0;  // of a broadcast; the other rank of a send or receive
  uint64_t bytes = 0;
  uint64_t place = 0;   // of the buffer in the arena, 0 for other memory
  uint64_t digest = 0;  // of what has no field: unequal parts, the end of a long name or form
  uint64_t step = 0;    // the program's own count of its steps; 0: it does not count
  Memory memory = Memory::kHost;
  std::array<char, 39> name = {};
  std::array<char, 32> form = {};  // type and shape as the caller has them: "int16[2, 3]"

  bool operator==(const Call&) const = default;
  // These keep what fits; a longer text goes into the digest as a whole.
  void SetName(std::string_view whole);
  void SetForm(std::string_view whole);
  void AddTextToDigest(std::string_view text);
  void AddToDigest(uint64_t value) { digest = (digest ^ value) * 0x100000001b3U + 1; }
  // Equal calls have equal ones; for unequal calls that is one chance in 2^64.
  uint64_t Fingerprint() const;
  // "all-reduce 'conv1'"
  std::string Title() const;
  // "all-reduce 'conv1' of 4194304 bytes (float32[1024, 1024], sum, step 7)"
  std::string Describe() const;
};
static_assert(sizeof(Call) == 112 && std::is_trivially_copyable_v<Call>);

// A tensor's form, as calls compare it: "float32[2, 3]"; "float32[]" for a scalar.
std::string FormOf(std::string_view type, std::span<const int64_t> shape);

}  // namespace hearth::collective
