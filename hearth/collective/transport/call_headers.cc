#include "hearth/collective/transport/call_headers.h"

#include "hearth/base/error.h"

namespace hearth::collective {

void CallHeaders::BeginWith(int peer, PeerHeaders* headers) const {
  headers->owed = peer == (self_ + 1) % size_;
  headers->awaited = peer == (self_ + size_ - 1) % size_;
}

bool CallHeaders::BeginPair(const Call& call, int partner, int peer, PeerHeaders* headers) {
  const bool sends = call.operation == Operation::kSend;
  headers->owed = peer == partner && sends;
  headers->awaited = peer == partner && !sends;
  if (peer != partner) return false;
  // Both sides use the header of the send, so that the headers can be compared. Sends and receives
  // are counted separately, because both ranks may send first.
  Call both = call;
  both.operation = Operation::kSend;
  both.root = sends ? partner : self_;
  own_ = CallHeader(both, sends ? ++headers->pair_sends : ++headers->pair_receives);
  return true;
}

void CallHeaders::Check(const PeerHeaders& headers, const Peer& peer) const {
  const CallHeader& received = headers.received;
  Require(received == own_, ErrorCode::kInvalidArgument,
          "{} called {} as operation number {}, but this rank is at operation number {}; {}",
          peer.name(), received.Describe(), received.number, own_.number, kMatchAdvice);
}

}  // namespace hearth::collective
