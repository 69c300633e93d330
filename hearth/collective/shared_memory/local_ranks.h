#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/error.h"
#include "hearth/base/shared_memory.h"
#include "hearth/collective/operation/abort_signal.h"
#include "hearth/collective/operation/bounded_yields.h"
#include "hearth/collective/operation/call.h"
#include "hearth/collective/operation/futex.h"
#include "hearth/collective/operation/pause.h"
#include "hearth/collective/operation/peer.h"
#include "hearth/collective/shared_memory/shared_page.h"

namespace hearth::collective {

// The ranks that share memory with this one (threads of this process or processes of this host) and
// their synchronisation. Belongs to one rank and is used by one thread.
class LocalRanks {
 public:
  // A rank of this host: its name, process and page.
  struct Member {
    Peer peer;
    int pid = 0;
    Mapping page;
  };

  // Members in rank order, including `self`. The peers must have mapped each other's pages. `ranks`
  // is the number of ranks that share the host's cores; 0 means the number of members.
  LocalRanks(std::vector<Member> members, int self, std::shared_ptr<AbortSignal> abort,
             int ranks = 0);
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;
  ~LocalRanks();

  int size() const { return static_cast<int>(members_.size()); }
  int self() const { return self_; }
  const Peer& peer(int index) const { return members_[index].peer; }
  int pid(int index) const { return members_[index].pid; }
  SharedPage& page(int index) const { return PageIn(members_[index].page); }

  // Announces the operation of the next steps.
  void Begin(const Call& call) {
    call_ = call;
    fingerprint_ = call.Fingerprint();
  }

  // Returns once all members have reached this step; their earlier writes are then visible. Throws
  // as Await does, and kInvalidArgument if a member is in another operation.
  void Synchronize(Deadline deadline);

  // Waits until `reached()` returns true. Member `index` makes it true, then wakes this rank.
  // Throws kDeadlineExceeded or kUnavailable (the member left), both naming the member, or
  // kAborted.
  template <typename Condition>
  void Await(int index, Deadline deadline, const Condition& reached);
  // Wakes `index` if it sleeps in Await.
  void Wake(int index);

  // Name of a member that takes no further steps, or empty.
  std::string DepartedRank() const;

  // Announces that this rank takes no further steps, so that members that wait for it fail.
  // Idempotent.
  void Leave();

 private:
  // Number of checks before a sleep. They take 20 to 60 us: longer than a peer on another core
  // needs to respond, but too short to hold up a peer that needs this core.
  static constexpr int kSpins = 1000;

  void Arrive();
  template <typename Condition>
  void Sleep(int index, Deadline deadline, const Condition& reached);
  // Throws kUnavailable (the member left), or the reason of an abort that arrives at the same time.
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
  BoundedYields yields_;
};

template <typename Condition>
void LocalRanks::Await(int index, Deadline deadline, const Condition& reached) {
  const int tries = yields_.shares_core() ? BoundedYields::kPerWait : kSpins;
  for (int i = 0; i < tries; ++i) {
    if (reached()) return;
    if (!yields_.shares_core()) {
      Pause();
    } else if (!yields_.Yield()) {
      break;
    }
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
    // `left` is loaded before reached() is called, so that a member that arrives and then leaves
    // counts as arrived.
    const bool left = page(index).left.load(std::memory_order_acquire) != 0;
    if (reached()) break;
    if (left) ThrowLeft(index);
    abort_->ThrowIfRaised();
    Require(!deadline.expired(), ErrorCode::kDeadlineExceeded,
            "{} did not arrive before the deadline", peer(index).name());
    WaitWhileEqual(own.bell, seen, deadline);
  }
  own.waiting.store(0, std::memory_order_relaxed);
}

}  // namespace hearth::collective
