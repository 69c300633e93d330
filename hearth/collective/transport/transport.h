#pragma once

#include <string>

#include "hearth/base/deadline.h"
#include "hearth/collective/operation/call.h"
#include "hearth/collective/operation/plan.h"

namespace hearth::collective {

// Transfers messages between ranks. Belongs to one rank and is used by one thread.
class Transport {
 public:
  virtual ~Transport() = default;

  // In a transport, ranks are numbered 0 to size() - 1; self() is this rank.
  virtual int size() const = 0;
  virtual int self() const = 0;

  // Announces the call to which the next plans belong. Run throws kInvalidArgument if a peer is in
  // another call. The calls are compared even on ranks that exchange no messages.
  virtual void Begin(const Call& call) = 0;
  // Like Begin, for a plan between this rank and `peer` alone.
  virtual void BeginPair(const Call& call, int peer) = 0;

  // Returns once all data is received and all send buffers may be reused. Throws kUnavailable if a
  // peer has left or the connection to it is lost, kInvalidArgument if a peer is in another call,
  // kDeadlineExceeded, or kAborted. After an error, the transport is unusable, and so are the
  // peers' transports that include this rank.
  virtual void Run(const Plan& plan, Deadline deadline) = 0;

  // See Backend::DepartedRank.
  virtual std::string DepartedRank() = 0;

  // Makes peers that wait for this rank fail at once. Idempotent.
  virtual void Close() = 0;
};

}  // namespace hearth::collective
