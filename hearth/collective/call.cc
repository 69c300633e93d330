#include "hearth/collective/call.h"

#include <fmt/format.h>

#include <string_view>

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
  }
  return "unknown operation";
}

}  // namespace

std::string Call::Describe() const {
  if (operation == Operation::kBarrier) return "barrier";
  return fmt::format("{} of {} bytes", NameOf(operation), bytes);
}

}  // namespace hearth::collective
