// Where the ranks of groups say to which operation they have come, and ask who has not. Any thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hearth/rendezvous/attendance.h"

namespace hearth::rendezvous {
class Member;  // hearth/rendezvous/member.h
}

namespace hearth::collective {

class RollCall {
 public:
  virtual ~RollCall() = default;

  // Neither throws: where the rendezvous is lost, others say so.
  virtual void Come(const rendezvous::Attendee& attendee) noexcept = 0;
  // The ranks that have not come so far; nothing where that is not known. One thread at a time for
  // each rank. Takes a second at most.
  virtual std::optional<std::vector<int>> Absent(const rendezvous::Attendee& attendee) noexcept = 0;
};

// By the coordinator. `member` outlives it.
std::shared_ptr<RollCall> RollCallOf(rendezvous::Member& member);
// Among threads of this process.
std::shared_ptr<RollCall> RollCallOfThreads();

}  // namespace hearth::collective
