#pragma once

#include <cstdint>

#include "hearth/collective/operation/call_header.h"
#include "hearth/collective/operation/peer.h"

namespace hearth::collective {

// The headers that this rank exchanges with one peer in the running call.
struct PeerHeaders {
  bool owed = false;     // also if no message is sent: to the next rank
  bool awaited = false;  // also if no message is received: from the previous rank
  CallHeader received;   // the peer's
  // Calls with this peer alone, by direction: both ranks may send first.
  uint64_t pair_sends = 0;
  uint64_t pair_receives = 0;
};

// Decides which headers a transport of rank `self` of `size` exchanges, and compares them. Belongs
// to the transport and its thread.
class CallHeaders {
 public:
  CallHeaders(int self, int size) : self_(self), size_(size) {}

  // This rank's header of the running call.
  const CallHeader& own() const { return own_; }

  // Begins a call of all ranks, then with each peer. If every rank agrees with the previous one,
  // all agree.
  void Begin(const Call& call) { own_ = CallHeader(call, ++calls_); }
  void BeginWith(int peer, PeerHeaders* headers) const;
  // Begins a call between this rank and `partner` with each peer; returns true for the partner.
  bool BeginPair(const Call& call, int partner, int peer, PeerHeaders* headers);

  // Throws kInvalidArgument if the peer's header, which has been received, differs.
  void Check(const PeerHeaders& headers, const Peer& peer) const;

 private:
  const int self_;
  const int size_;
  uint64_t calls_ = 0;
  CallHeader own_;
};

}  // namespace hearth::collective
