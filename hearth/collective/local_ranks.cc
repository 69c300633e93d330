#include "hearth/collective/local_ranks.h"

#include <atomic>
#include <thread>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/collective/futex.h"
#include "hearth/collective/pause.h"

namespace hearth::collective {
namespace {

// About 20 us: longer than a peer on another core needs to notice, short enough not to take the
// core from a peer that shares it.
constexpr int kSpins = 1000;
constexpr int kSpinsPerYield = 100;

}  // namespace

LocalRanks::LocalRanks(std::vector<Member> members, int self, std::shared_ptr<AbortSignal> abort)
    : members_(std::move(members)), self_(self), abort_(std::move(abort)) {
  // With fewer cores than ranks, a spinning rank only keeps the one it waits for from running.
  const unsigned cores = std::thread::hardware_concurrency();
  spins_ = static_cast<unsigned>(size()) <= cores ? kSpins : 0;
  abort_->WakeToo(&page(self_).bell);
}

LocalRanks::~LocalRanks() {
  Leave();
  abort_->Forget();
}

void LocalRanks::Meet(Deadline deadline) {
  abort_->ThrowIfRaised();
  Arrive();
  for (int i = 0; i < size(); ++i) {
    if (i != self_) Await(i, deadline);
  }
  for (int i = 0; i < size(); ++i) {
    const Call& other = page(i).calls[step_ % 2];
    Require(other == call_, ErrorCode::kInvalidArgument,
            "{} called {} meanwhile; all ranks must do the same in the same order", peer(i).name(),
            other.Describe());
  }
}

void LocalRanks::Leave() {
  if (page(self_).left.exchange(1, std::memory_order_seq_cst) == 0) RingAll(false);
}

void LocalRanks::Arrive() {
  ++step_;
  page(self_).calls[step_ % 2] = call_;
  page(self_).arrived.store(step_, std::memory_order_release);
  RingAll(true);
}

void LocalRanks::RingAll(bool only_sleepers) {
  // Pairs with the fence in Sleep: either this thread sees the sleeper or the sleeper sees the
  // news.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int i = 0; i < size(); ++i) {
    if (i == self_) continue;
    if (only_sleepers && page(i).waiting.load(std::memory_order_relaxed) == 0) continue;
    BumpAndWake(page(i).bell);
  }
}

void LocalRanks::Await(int index, Deadline deadline) {
  for (int i = 0; i < spins_; ++i) {
    if (Reached(index)) return;
    // The peer may be ready to run on this very core.
    if (i % kSpinsPerYield == kSpinsPerYield - 1) std::this_thread::yield();
    Pause();
  }
  if (!Reached(index)) Sleep(index, deadline);
}

void LocalRanks::Sleep(int index, Deadline deadline) {
  SharedPage& own = page(self_);
  own.waiting.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  while (true) {
    const uint32_t seen = own.bell.load(std::memory_order_seq_cst);
    // In this order: a member that arrives and then leaves has arrived.
    const bool left = page(index).left.load(std::memory_order_acquire) != 0;
    if (Reached(index)) break;
    Require(!left, ErrorCode::kUnavailable, "{} left the group", peer(index).name());
    abort_->ThrowIfRaised();
    Require(!deadline.expired(), ErrorCode::kDeadlineExceeded, "{} did not come in time",
            peer(index).name());
    WaitWhileEqual(own.bell, seen, deadline);
  }
  own.waiting.store(0, std::memory_order_relaxed);
}

}  // namespace hearth::collective
