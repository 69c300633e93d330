// Moves bytes between ranks by messages. Belongs to one rank; one thread uses it.
#pragma once

#include <string>

#include "hearth/base/deadline.h"
#include "hearth/collective/call.h"
#include "hearth/collective/plan.h"

namespace hearth::collective {

class Transport {
 public:
  virtual ~Transport() = default;

  // Ranks are numbered 0 to size() - 1 here; `self` is this one.
  virtual int size() const = 0;
  virtual int self() const = 0;

  // What the next plans are for. A peer's Run throws kInvalidArgument when it is at another call.
  // All ranks compare it, also those that exchange nothing else.
  virtual void Begin(const Call& call) = 0;
  // The same for a plan between this rank and `peer` alone.
  virtual void BeginPair(const Call& call, int peer) = 0;

  // Returns once everything is received and all data to send may change. After an error the
  // transport is unusable, and so are its peers' transports to this rank.
  virtual void Run(const Plan& plan, Deadline deadline) = 0;

  // As Backend's.
  virtual std::string WhoLeft() = 0;

  // Lets the peers' waits for this rank end at once. Idempotent.
  virtual void Close() = 0;
};

}  // namespace hearth::collective
