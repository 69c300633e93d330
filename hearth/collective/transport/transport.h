#pragma once

#include <string>

#include "hearth/base/deadline.h"
#include "hearth/collective/operation/call.h"
#include "hearth/collective/operation/plan.h"

namespace hearth::collective {

// Moves messages between ranks. Belongs to one rank; one thread uses it.
class Transport {
 public:
  virtual ~Transport() = default;

  // Ranks are numbered 0 to size() - 1 here; `self` is this rank.
  virtual int size() const = 0;
  virtual int self() const = 0;

  // Announces the call of the next plans. Run throws kInvalidArgument if a peer is in another call.
  // Ranks that exchange no messages compare it too.
  virtual void Begin(const Call& call) = 0;
  // The same for a plan between this rank and `peer` alone.
  virtual void BeginPair(const Call& call, int peer) = 0;

  // Returns once all data is received and all send buffers may be reused. Throws kUnavailable if a
  // peer has left or the connection to it is lost, kInvalidArgument if a peer is in another call,
  // kDeadlineExceeded, or kAborted. After an error the transport is unusable, and so are its peers'
  // transports to this rank.
  virtual void Run(const Plan& plan, Deadline deadline) = 0;

  // As Backend::DepartedRank.
  virtual std::string DepartedRank() = 0;

  // Peers that wait for this rank fail at once. Idempotent.
  virtual void Close() = 0;
};

}  // namespace hearth::collective
