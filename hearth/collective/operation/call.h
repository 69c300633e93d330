// Describes an operation of a rank, for comparison between ranks and for error messages.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "hearth/collective/operation/data_type.h"

namespace hearth::collective {

// A collective operation. The comments describe sizes by the fields of Request.
enum class Operation : uint8_t {
  // Input and output have `count` elements.
  kAllReduce,
  // The input has `count` elements, the output is this rank's part. In place, the part stays at its
  // position in the buffer.
  kReduceScatter,
  // The input is this rank's part, the output has `count` elements. In place, the part is already
  // at its position in the output.
  kAllGather,
  // Sends the data of rank `peer`. The other ranks ignore their input.
  kBroadcast,
  kBarrier,
  kAllocate,  // only in a Call, not in a Request: see Group::Allocate
  // Input and output have `count` elements, a multiple of the world. Block r of the input is sent
  // to rank r; block r of the output is received from rank r.
  kAllToAll,
  // To or from rank `peer`, which makes the opposite call. Not ordered relative to calls of other
  // ranks.
  kSend,
  kReceive,
};

// Advice in errors of ranks that make different calls.
inline constexpr std::string_view kMatchAdvice =
    "all ranks must do the same in the same order, with uneven rows by in_step()";
// Advice in errors of a rank that makes fewer calls.
inline constexpr std::string_view kStepsAdvice =
    "all ranks must take the same number of steps, with uneven rows by in_step()";

// True for operations between two ranks; all others involve the whole group.
constexpr bool IsPair(Operation operation) {
  return operation == Operation::kSend || operation == Operation::kReceive;
}

// True for operations that combine the values of several ranks.
constexpr bool Reduces(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kReduceScatter;
}

// Type in which float32 values are sent between hosts.
enum class Wire : uint8_t { kFloat32, kFloat16, kBfloat16 };

constexpr const char* NameOf(Wire wire) {
  constexpr const char* kNames[] = {"float32", "float16", "bfloat16"};
  return EntryOf(kNames, wire, "unknown type");
}

// Memory that the operation works on.
enum class Memory : uint8_t { kHost, kDevice };

// Describes an operation for comparison. Sent as raw bytes, so it has no padding.
struct Call {
  Operation operation = Operation::kBarrier;
  DataType type = DataType::kFloat32;
  Op op = Op::kSum;
  Wire wire = Wire::kFloat32;
  int32_t root = 0;  // broadcast: the root; send and receive: the other rank
  uint64_t bytes = 0;
  uint64_t location = 0;  // location of the buffer in the arena, 0 for other memory
  // Hash of data that no field contains: the sizes of unequal parts, and names or signatures too
  // long for their fields.
  uint64_t digest = 0;
  uint64_t step = 0;  // the program's step counter; 0: none
  Memory memory = Memory::kHost;
  std::array<char, 39> name = {};
  std::array<char, 32> signature = {};  // the caller's type and shape: "int16[2, 3]"

  bool operator==(const Call&) const = default;
  // Store the text in its field. If it must be truncated, the whole text is added to the digest.
  void SetName(std::string_view whole);
  void SetSignature(std::string_view whole);
  void AddTextToDigest(std::string_view text);
  void AddToDigest(uint64_t value) { digest = (digest ^ value) * 0x100000001b3U + 1; }
  // Equal calls have equal fingerprints; unequal calls collide with a probability of 2^-64.
  uint64_t Fingerprint() const;
  // "all-reduce 'conv1'"
  std::string Title() const;
  // "all-reduce 'conv1' of 4194304 bytes (float32[1024, 1024], sum, step 7)"
  std::string Describe() const;
};
static_assert(sizeof(Call) == 112 && std::is_trivially_copyable_v<Call>);

// Describes a tensor's type and shape, for comparison: "float32[2, 3]", or "float32[]" for a
// scalar.
std::string SignatureOf(std::string_view type, std::span<const int64_t> shape);

}  // namespace hearth::collective
