#include "hearth/collective/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace hearth::collective {
namespace {

std::string_view NameOf(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return "all-reduce";
    case Operation::kReduceScatter:
      return "reduce-scatter";
    case Operation::kAllGather:
      return "all-gather";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kBarrier:
      return "barrier";
    case Operation::kAllocate:
      return "allocation";
    case Operation::kAllToAll:
      return "all-to-all";
    case Operation::kSend:
      return "send";
    case Operation::kReceive:
      return "receive";
  }
  return "unknown operation";
}

std::string DetailOf(const Call& call) {
  switch (call.operation) {
    case Operation::kAllReduce:
    case Operation::kReduceScatter: {
      const char* wire = call.wire == Wire::kFloat32   ? ""
                         : call.wire == Wire::kFloat16 ? ", float16 on the wire"
                                                       : ", bfloat16 on the wire";
      return fmt::format("{}, {}{}", NameOf(call.type), NameOf(call.op), wire);
    }
    case Operation::kBroadcast:
    case Operation::kReceive:
      return fmt::format("{}, from rank {}", NameOf(call.type), call.root);
    case Operation::kSend:
      return fmt::format("{}, to rank {}", NameOf(call.type), call.root);
    case Operation::kAllGather:
    case Operation::kAllToAll:
      return NameOf(call.type);
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
  uint64_t mixed = 0;
  for (const uint64_t word : words) {
    mixed = (mixed ^ word) * 0x9e3779b97f4a7c15U;
    mixed ^= mixed >> 32;
  }
  return mixed;
}

void Call::SetName(std::string_view whole) {
  std::memcpy(name.data(), whole.data(), std::min(whole.size(), name.size()));
  if (whole.size() <= name.size()) return;
  for (const char letter : whole) AddToDigest(static_cast<unsigned char>(letter));
}

std::string Call::Title() const {
  const std::string_view text(name.data(), ::strnlen(name.data(), name.size()));
  std::string said(NameOf(operation));
  if (!text.empty()) said += fmt::format(" '{}'", text);
  return said;
}

std::string Call::Describe() const {
  std::string said = Title();
  if (operation != Operation::kBarrier) said += fmt::format(" of {} bytes", bytes);
  std::string detail = DetailOf(*this);
  if (memory == Memory::kDevice) detail += detail.empty() ? "on GPUs" : ", on GPUs";
  if (digest != 0) detail += fmt::format("{}digest {:x}", detail.empty() ? "" : ", ", digest);
  return detail.empty() ? said : fmt::format("{} ({})", said, detail);
}

}  // namespace hearth::collective
