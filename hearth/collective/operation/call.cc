#include "hearth/collective/operation/call.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace hearth::collective {
namespace {

std::string_view NameOf(Operation operation) {
  constexpr const char* kNames[] = {"all-reduce", "reduce-scatter", "all-gather",
                                    "broadcast",  "barrier",        "allocation",
                                    "all-to-all", "send",           "receive"};
  return EntryOf(kNames, operation, "unknown operation");
}

// A text that fills its field has no terminating zero.
template <size_t kSize>
std::string_view TextIn(const std::array<char, kSize>& field) {
  return {field.data(), ::strnlen(field.data(), field.size())};
}

// Returns true if the whole text fits.
template <size_t kSize>
bool Keep(std::string_view whole, std::array<char, kSize>& field) {
  std::memcpy(field.data(), whole.data(), std::min(whole.size(), field.size()));
  return whole.size() <= field.size();
}

// Describes the fields, besides kind and size, in which two ranks' calls of this operation can
// differ.
std::string DetailOf(const Call& call) {
  const std::string_view signature = TextIn(call.signature);
  const std::string_view type = signature.empty() ? NameOf(call.type) : signature;
  switch (call.operation) {
    case Operation::kAllReduce:
    case Operation::kReduceScatter: {
      const std::string detail = fmt::format("{}, {}", type, NameOf(call.op));
      if (call.wire == Wire::kFloat32) return detail;
      return fmt::format("{}, {} on the wire", detail, NameOf(call.wire));
    }
    case Operation::kBroadcast:
    case Operation::kReceive:
      return fmt::format("{}, from rank {}", type, call.root);
    case Operation::kSend:
      return fmt::format("{}, to rank {}", type, call.root);
    case Operation::kAllGather:
    case Operation::kAllToAll:
      return std::string(type);
    case Operation::kBarrier:
    case Operation::kAllocate:
      break;
  }
  return "";
}

}  // namespace

uint64_t Call::Fingerprint() const {
  std::array<uint64_t, sizeof(Call) / sizeof(uint64_t)> words;
  static_assert(sizeof words == sizeof(Call));
  std::memcpy(words.data(), this, sizeof words);
  // Fibonacci hashing: the factor is 2^64 divided by the golden ratio. The multiplication moves
  // information only to higher bits, so the shift moves it back to lower ones. Both steps are
  // bijections, so two calls that differ in a single word never collide.
  uint64_t mixed = 0;
  for (const uint64_t word : words) {
    mixed = (mixed ^ word) * 0x9e3779b97f4a7c15U;
    mixed ^= mixed >> 32;
  }
  return mixed;
}

void Call::SetName(std::string_view whole) {
  if (!Keep(whole, name)) AddTextToDigest(whole);
}

void Call::SetSignature(std::string_view whole) {
  if (!Keep(whole, signature)) AddTextToDigest(whole);
}

void Call::AddTextToDigest(std::string_view text) {
  for (const char letter : text) AddToDigest(static_cast<unsigned char>(letter));
}

std::string Call::Title() const {
  const std::string_view text = TextIn(name);
  std::string title(NameOf(operation));
  if (!text.empty()) title += fmt::format(" '{}'", text);
  return title;
}

std::string Call::Describe() const {
  std::string title = Title();
  if (operation != Operation::kBarrier) title += fmt::format(" of {} bytes", bytes);
  std::string detail = DetailOf(*this);
  const auto add = [&](std::string_view more) {
    if (!detail.empty()) detail += ", ";
    detail += more;
  };
  if (memory == Memory::kDevice) add("on GPUs");
  if (step != 0) add(fmt::format("step {}", step));
  if (digest != 0) add(fmt::format("digest {:x}", digest));
  return detail.empty() ? title : fmt::format("{} ({})", title, detail);
}

std::string SignatureOf(std::string_view type, std::span<const int64_t> shape) {
  return fmt::format("{}[{}]", type, fmt::join(shape, ", "));
}

}  // namespace hearth::collective
