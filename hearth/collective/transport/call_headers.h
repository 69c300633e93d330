#pragma once

#include <cstdint>

#include "hearth/collective/operation/call_header.h"
#include "hearth/collective/operation/peer.h"

namespace hearth::collective {

// The headers that this rank exchanges with one peer in the running call.
struct PeerHeaders {
  // True if a header must be sent. The next rank always gets one, even if the call sends no data.
  bool owed = false;
  // True if a header is expected. The previous rank always sends one, even without data.
  bool awaited = false;
  CallHeader received;  // the peer's header
  // Number of calls with this peer alone, counted by direction because both ranks may send first.
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

  // Begin starts a call of all ranks; then BeginWith sets the headers for each peer. A rank always
  // checks the header of the previous rank, so all ranks make the same call if no check fails.
  void Begin(const Call& call) { own_ = CallHeader(call, ++calls_); }
  void BeginWith(int peer, PeerHeaders* headers) const;
  // Starts a call between this rank and `partner`. Called for each peer; returns true if `peer` is
  // the partner.
  bool BeginPair(const Call& call, int partner, int peer, PeerHeaders* headers);

  // Throws kInvalidArgument if the header received from the peer differs from own().
  void Check(const PeerHeaders& headers, const Peer& peer) const;

 private:
  const int self_;
  const int size_;
  uint64_t calls_ = 0;
  CallHeader own_;
};

}  // namespace hearth::collective
