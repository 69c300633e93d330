#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "hearth/collective/operation/call.h"

namespace hearth::collective {

// Header sent over TCP or RDMA before an operation's first message to a peer. The next rank always
// receives a header, even without a message. This makes ranks in different operations fail instead
// of mixing up their bytes or waiting forever.
struct CallHeader {
  uint64_t number = 0;  // number of the operation in the transport, or between two ranks
  Call call;

  CallHeader() = default;
  CallHeader(const Call& what, uint64_t call_number) : number(call_number), call(what) {
    call.location = 0;  // locations differ between hosts
  }

  bool operator==(const CallHeader&) const = default;
  std::string Describe() const { return call.Describe(); }
};
static_assert(sizeof(CallHeader) == 120 && std::is_trivially_copyable_v<CallHeader>);

}  // namespace hearth::collective
