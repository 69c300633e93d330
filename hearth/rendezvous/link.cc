#include "hearth/rendezvous/link.h"

#include <algorithm>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/hmac.h"
#include "hearth/rendezvous/handshake.h"

namespace hearth::rendezvous {
namespace {

// Limit of queued bytes: a member that has not read them is considered stuck. A single message may
// be larger.
constexpr size_t kMaxWaitingBytes = 8 * kMaxFrameBytes;
// Seconds until the next attempt to accept; a descriptor may be free by then.
constexpr double kPauseAfterFailure = 0.25;

}  // namespace

Link::Link(Connection connection, std::string hello, Deadline handshake)
    : connection_(std::move(connection)), hello_(std::move(hello)), handshake_(handshake) {}

bool Link::Receive() {
  // Reads once per event, so that a member that sends a lot does not delay the others.
  char bytes[16384];
  const auto got = connection_.TryRead(bytes, sizeof(bytes));
  if (!got) return true;
  if (*got == 0) return false;
  std::string_view received(bytes, *got);
  // Stores no byte beyond the claim until the claim is complete, whatever the client sends.
  const size_t to_claim = std::min(received.size(), kClaimBytes - claim_.size());
  claim_.append(received.substr(0, to_claim));
  received.remove_prefix(to_claim);
  if (is_member()) {
    frames_.Append(received);
    SetSilenceTimeout(silence_timeout_s_);
  } else {
    // Clients must not send their first frame before the verdict.
    Require(received.empty(), ErrorCode::kInvalidArgument,
            "{} sent data before its handshake was accepted", peer());
  }
  return true;
}

std::optional<std::string> Link::TakeClaim() {
  if (is_member() || claim_.size() < kClaimBytes) return std::nullopt;
  return claim_;
}

void Link::Send(std::string_view bytes) {
  Flush();  // the peer may have read data, which frees buffer space
  const size_t waiting = out_.size() - sent_;
  Require(waiting <= kMaxWaitingBytes, ErrorCode::kResourceExhausted,
          "{} does not read: {} bytes are pending", peer(), waiting);
  out_.append(bytes);
  Flush();
}

void Link::Flush() {
  while (!out_.empty()) {
    const size_t sent = connection_.TryWrite(out_.data() + sent_, out_.size() - sent_);
    if (sent == 0) return;
    sent_ += sent;
    if (sent_ < out_.size()) continue;
    out_ = {};  // releases the memory, because large messages are rare
    sent_ = 0;
  }
}

Connection Link::Release() {
  closed_ = true;
  return std::move(connection_);
}

void Link::Close() {
  closed_ = true;
  out_.clear();
  sent_ = 0;
  connection_.Shutdown();
}

void Link::SetSilenceTimeout(double timeout_s) {
  silence_timeout_s_ = timeout_s;
  silent_after_ = Deadline::After(timeout_s);
}

std::unique_ptr<Link> AcceptLink(TcpListener& listener, double handshake_s,
                                 Deadline* accept_again) {
  try {
    return std::make_unique<Link>(listener.Accept(Deadline::After(0)),
                                  MakeHello(RandomBytes(kNonceBytes)),
                                  Deadline::After(handshake_s));
  } catch (const Error& error) {
    // Treats every error as temporary, because the listener must stay open.
    const bool left = error.code() == ErrorCode::kDeadlineExceeded;
    if (!left) *accept_again = Deadline::After(kPauseAfterFailure);
    return nullptr;
  }
}

}  // namespace hearth::rendezvous
