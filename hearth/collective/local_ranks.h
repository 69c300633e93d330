// The ranks that share memory with this one (threads of this process or processes of this host) and
// the steps they take together. Belongs to one rank; one thread uses it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/error.h"
#include "hearth/base/shared_memory.h"
#include "hearth/collective/abort_signal.h"
#include "hearth/collective/call.h"
#include "hearth/collective/futex.h"
#include "hearth/collective/pause.h"
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
  void Begin(const Call& call) {
    call_ = call;
    fingerprint_ = call.Fingerprint();
  }

  // Returns once all members have reached this step. What they wrote before is visible afterwards.
  // Throws kInvalidArgument when a member is in another operation.
  void Meet(Deadline deadline);

  // Waits for `reached()`, which member `index` makes true before it calls Wake on this rank.
  template <typename Condition>
  void Await(int index, Deadline deadline, const Condition& reached);
  // Ends what `index` awaits, if it sleeps.
  void Wake(int index);

  // Names a member that takes no further steps, or is empty.
  std::string WhoLeft() const;

  // Tells the members that this rank takes no further steps: their waits for it end. Idempotent.
  void Leave();

 private:
  // 20 to 60 us: longer than a peer on another core needs to notice, short enough not to take the
  // core from a peer that shares it. Without yields, which hand a busy core away for milliseconds
  // (decision 050).
  static constexpr int kSpins = 1000;

  void Arrive();
  template <typename Condition>
  void Sleep(int index, Deadline deadline, const Condition& reached);
  // That a member left, or why the group ended, where rank 0 reports that in the same moment.
  [[noreturn]] void ThrowLeft(int index) const;
  void RingAll(bool only_sleepers);
  bool Reached(int index) const {
    return static_cast<int32_t>(page(index).arrived.load(std::memory_order_acquire) - step_) >= 0;
  }

  const std::vector<Member> members_;
  const int self_;
  const std::shared_ptr<AbortSignal> abort_;
  Call call_;
  uint64_t fingerprint_ = Call().Fingerprint();
  uint32_t step_ = 0;
  int spins_;
};

template <typename Condition>
void LocalRanks::Await(int index, Deadline deadline, const Condition& reached) {
  for (int i = 0; i < spins_; ++i) {
    if (reached()) return;
    Pause();
  }
  if (!reached()) Sleep(index, deadline, reached);
}

template <typename Condition>
void LocalRanks::Sleep(int index, Deadline deadline, const Condition& reached) {
  SharedPage& own = page(self_);
  own.waiting.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  while (true) {
    const uint32_t seen = own.bell.load(std::memory_order_seq_cst);
    // In this order: a member that arrives and then leaves has arrived.
    const bool left = page(index).left.load(std::memory_order_acquire) != 0;
    if (reached()) break;
    if (left) ThrowLeft(index);
    abort_->ThrowIfRaised();
    Require(!deadline.expired(), ErrorCode::kDeadlineExceeded, "{} did not come in time",
            peer(index).name());
    WaitWhileEqual(own.bell, seen, deadline);
  }
  own.waiting.store(0, std::memory_order_relaxed);
}

}  // namespace hearth::collective
