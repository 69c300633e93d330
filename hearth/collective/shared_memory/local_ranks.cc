#include "hearth/collective/shared_memory/local_ranks.h"

#include <poll.h>

#include <atomic>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/collective/operation/futex.h"

namespace hearth::collective {
LocalRanks::LocalRanks(std::vector<Member> members, int self, std::shared_ptr<AbortSignal> abort,
                       int ranks)
    : members_(std::move(members)),
      self_(self),
      abort_(std::move(abort)),
      yields_(ranks > 0 ? ranks : size()) {
  // A rank sleeps on its bell and not on the signal's descriptor, so an abort must ring the bell
  // too.
  abort_->WakeToo(&page(self_).bell);
}

LocalRanks::~LocalRanks() {
  Leave();
  abort_->Forget();
}

void LocalRanks::Synchronize(Deadline deadline) {
  abort_->ThrowIfRaised();
  Arrive();
  for (int i = 0; i < size(); ++i) {
    if (i != self_) Await(i, deadline, [&] { return Reached(i); });
  }
  // The peers' calls can be read here without a lock: a peer writes its call before it arrives, and
  // overwrites the slot only after this rank has arrived at the next step (SharedPage).
  for (int i = 0; i < size(); ++i) {
    if (page(i).fingerprints[step_ % 2] == fingerprint_) continue;
    const Call& other = page(i).calls[step_ % 2];
    Throw(ErrorCode::kInvalidArgument, "{} called {}{} meanwhile; {}", peer(i).name(),
          other.Describe(),
          other.location == call_.location ? "" : " at another location in the group's memory",
          kMatchAdvice);
  }
}

std::string LocalRanks::DepartedRank() const {
  for (int i = 0; i < size(); ++i) {
    if (i != self_ && page(i).left.load(std::memory_order_acquire) != 0) return peer(i).name();
  }
  return "";
}

void LocalRanks::Leave() {
  if (page(self_).left.exchange(1, std::memory_order_seq_cst) == 0) RingAll(false);
}

void LocalRanks::Arrive() {
  ++step_;
  page(self_).calls[step_ % 2] = call_;
  page(self_).fingerprints[step_ % 2] = fingerprint_;
  page(self_).arrived.store(step_, std::memory_order_release);
  // Pairs with the fences of the other members, so that at least the last member to arrive sees
  // that all have arrived.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Only the last member to arrive wakes the others. If every arrival did, n members would wake
  // each other n times per step.
  for (int i = 0; i < size(); ++i) {
    if (!Reached(i)) return;
  }
  RingAll(true);
}

void LocalRanks::ThrowLeft(int index) const {
  // The process of rank 0 runs the coordinator. If rank 0 has left, an abort with the reason
  // arrives at about the same time, so this waits for the abort.
  constexpr int kReasonMs = 500;
  pollfd reason{abort_->fd(), POLLIN, 0};
  if (peer(index).rank == 0) poll(&reason, 1, kReasonMs);
  abort_->ThrowIfRaised();
  Throw(ErrorCode::kUnavailable, "{} left the group", peer(index).name());
}

void LocalRanks::RingAll(bool only_sleepers) {
  // Pairs with the fence in Sleep: either this thread sees that the peer sleeps, or the peer sees
  // the change before it sleeps.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int i = 0; i < size(); ++i) {
    if (i == self_) continue;
    if (only_sleepers && page(i).waiting.load(std::memory_order_relaxed) == 0) continue;
    BumpAndWake(page(i).bell);
  }
}

void LocalRanks::Wake(int index) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence in Sleep
  if (page(index).waiting.load(std::memory_order_relaxed) != 0) BumpAndWake(page(index).bell);
}

}  // namespace hearth::collective
