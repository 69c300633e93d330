// The ranks that share memory with this one (threads of this process or processes of this host) and
// the steps they take together. Belongs to one rank; one thread uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/shared_memory.h"
#include "hearth/collective/abort_signal.h"
#include "hearth/collective/call.h"
#include "hearth/collective/peer.h"
#include "hearth/collective/shared_page.h"

namespace hearth::collective {

class LocalRanks {
 public:
  struct Member {
    Peer peer;
    int pid = 0;
    Mapping page;
  };

  // Members in rank order, `self` among them. Peers must map each other's pages already.
  LocalRanks(std::vector<Member> members, int self, std::shared_ptr<AbortSignal> abort);
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;
  ~LocalRanks();

  int size() const { return static_cast<int>(members_.size()); }
  int self() const { return self_; }
  const Peer& peer(int index) const { return members_[index].peer; }
  int pid(int index) const { return members_[index].pid; }
  SharedPage& page(int index) const { return PageIn(members_[index].page); }

  // What the next steps are for.
  void Begin(const Call& call) { call_ = call; }

  // Returns once all members have reached this step. What they wrote before is visible afterwards.
  // Throws kInvalidArgument when a member is in another operation.
  void Meet(Deadline deadline);

  // Tells the members that this rank takes no further steps: their waits for it end. Idempotent.
  void Leave();

 private:
  void Arrive();
  void Await(int index, Deadline deadline);
  void Sleep(int index, Deadline deadline);
  void RingAll(bool only_sleepers);
  bool Reached(int index) const {
    return static_cast<int32_t>(page(index).arrived.load(std::memory_order_acquire) - step_) >= 0;
  }

  const std::vector<Member> members_;
  const int self_;
  const std::shared_ptr<AbortSignal> abort_;
  Call call_;
  uint32_t step_ = 0;
  int spins_;
};

}  // namespace hearth::collective
