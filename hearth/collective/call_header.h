// Sent over tcp before an operation's first message to a peer, so that ranks in different
// operations notice it instead of mixing up their bytes.
#pragma once

#include <cstdint>
#include <type_traits>

#include "hearth/collective/call.h"

namespace hearth::collective {

struct CallHeader {
  uint64_t number = 0;  // counts the operations of the transport
  uint64_t bytes = 0;
  int32_t root = 0;
  uint8_t operation = 0;
  uint8_t type = 0;
  uint8_t op = 0;
  uint8_t reserved = 0;

  CallHeader() = default;
  CallHeader(const Call& call, uint64_t call_number)
      : number(call_number),
        bytes(call.bytes),
        root(call.root),
        operation(static_cast<uint8_t>(call.operation)),
        type(static_cast<uint8_t>(call.type)),
        op(static_cast<uint8_t>(call.op)) {}

  bool operator==(const CallHeader&) const = default;
  std::string Describe() const {
    return Call{.operation = static_cast<Operation>(operation), .bytes = bytes}.Describe();
  }
};
static_assert(sizeof(CallHeader) == 24 && std::is_trivially_copyable_v<CallHeader>);

}  // namespace hearth::collective
