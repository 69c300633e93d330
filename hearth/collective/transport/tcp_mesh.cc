#include "hearth/collective/transport/tcp_mesh.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/rendezvous/link.h"

namespace hearth::collective {
namespace {

// Limit of unauthenticated clients, in addition to one per rank. If it is exceeded, the oldest
// client is dropped once it has had time for a handshake, so that many slow clients cannot lock a
// rank out.
constexpr size_t kMaxUnauthenticated = 64;
constexpr double kHandshakeSeconds = 5;
constexpr int kNamedRefusals = 10;

using Connections = std::vector<std::optional<Connection>>;

class Mesh {
 public:
  Mesh(const MeshSetup& setup, const AbortSignal& abort, Deadline deadline)
      : setup_(setup),
        abort_(abort),
        deadline_(deadline),
        credentials_(setup.token, "collective " + setup.session),
        connections_(setup.ranks.size()) {}

  Connections Build(TcpListener& listener) && {
    // Connects first and accepts afterwards. The waits then form no cycle: rank 0 only accepts, and
    // each other rank accepts once it is connected to all lower ranks.
    for (int index = 0; index < setup_.self; ++index) ConnectTo(index);
    missing_ = setup_.ranks.size() - static_cast<size_t>(setup_.self) - 1;
    while (missing_ > 0) AwaitCallers(listener);
    if (refused_ > 0) log::Warning("{} data connections were refused", refused_);
    return std::move(connections_);
  }

 private:
  void ConnectTo(int index) {
    const MeshRank& rank = setup_.ranks[static_cast<size_t>(index)];
    abort_.ThrowIfRaised();
    try {
      Connection connection = Connection::Connect(rank.address, rank.port, deadline_);
      const auto self =
          static_cast<uint32_t>(setup_.ranks[static_cast<size_t>(setup_.self)].peer.rank);
      rendezvous::OfferHandshake(connection, credentials_,
                                 {static_cast<uint32_t>(setup_.generation), self}, deadline_);
      connections_[static_cast<size_t>(index)] = std::move(connection);
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("cannot connect to {} at {}", rank.peer.name(),
                              EndpointName(rank.address, rank.port)),
                  error);
    }
  }

  void AwaitCallers(TcpListener& listener) {
    std::vector<pollfd> entries = {{accept_again_.expired() ? listener.fd() : -1, POLLIN, 0},
                                   {abort_.fd(), POLLIN, 0}};
    for (const auto& caller : callers_) entries.push_back({caller->fd(), POLLIN, 0});
    Deadline next = deadline_;
    // The first caller has the earliest deadline, because callers are ordered by arrival.
    if (!callers_.empty()) next = Deadline::Earlier(next, callers_.front()->handshake());
    if (!accept_again_.expired()) next = Deadline::Earlier(next, accept_again_);
    const int ready = ::poll(entries.data(), entries.size(), next.poll_timeout_ms());
    abort_.ThrowIfRaised();
    if (ready < 0 && errno != EINTR) ThrowErrno(errno, "cannot wait for data connections");
    // The loop runs before Accept, which appends to callers_, so that entries[i] still belongs to
    // callers_[i - 2].
    for (size_t i = 2; i < entries.size(); ++i) {
      if (entries[i].revents != 0) Serve(*callers_[i - 2]);
    }
    if (entries[0].revents != 0) Accept(listener);
    for (const auto& caller : callers_) {
      if (!caller->closed() && caller->handshake().expired())
        Refuse(*caller, "the handshake timed out");
    }
    std::erase_if(callers_, [](const auto& caller) { return caller->closed(); });
    if (missing_ > 0 && deadline_.expired()) {
      Throw(ErrorCode::kDeadlineExceeded, "{} did not connect in time", FirstMissing());
    }
  }

  void Accept(TcpListener& listener) {
    const auto open = [](const auto& caller) { return !caller->closed(); };
    const auto oldest = std::find_if(callers_.begin(), callers_.end(), open);
    if (std::count_if(callers_.begin(), callers_.end(), open) >=
        static_cast<std::ptrdiff_t>(kMaxUnauthenticated + setup_.ranks.size())) {
      // Until the oldest client may be dropped, new clients wait in the listener's backlog.
      accept_again_ = (*oldest)->replaceable();
      if (!accept_again_.expired()) return;
      Refuse(**oldest, "too many newer connections");
    }
    auto caller = rendezvous::AcceptLink(listener, kHandshakeSeconds, &accept_again_);
    if (caller == nullptr) return;
    callers_.push_back(std::move(caller));
    try {
      callers_.back()->Greet();
    } catch (const Error& error) {
      Refuse(*callers_.back(), error.message());
    }
  }

  void Serve(rendezvous::Link& caller) {
    try {
      const bool is_open = caller.Receive();
      if (const auto claim = caller.TakeClaim()) return Admit(caller, *claim);
      Require(is_open, ErrorCode::kUnavailable, "it left");
    } catch (const Error& error) {
      if (!caller.closed()) Refuse(caller, error.message());
    }
  }

  void Admit(rendezvous::Link& caller, const std::string& claim) {
    const rendezvous::Identity identity =
        rendezvous::CheckClaim(credentials_, caller.hello(), claim);
    const size_t index = IndexOf(identity);
    const rendezvous::Verdict verdict = Judge(identity, index);
    const auto generation = static_cast<uint32_t>(setup_.generation);
    // Sends the verdict before the check below, so that a client that knows the token learns why it
    // is refused.
    caller.Send(rendezvous::MakeVerdict(credentials_, caller.hello(), claim, verdict, generation));
    Require(verdict == rendezvous::Verdict::kAccepted, ErrorCode::kPermissionDenied,
            "rank {} of generation {} is not expected: each higher rank of generation {} connects "
            "once",
            identity.rank, identity.generation, generation);
    connections_[index] = caller.Release();
    --missing_;
  }

  void Refuse(rendezvous::Link& caller, const std::string& reason) {
    if (++refused_ <= kNamedRefusals) {
      log::Warning("refused a data connection from {}: {}", caller.peer(), reason);
    }
    caller.Close();
  }

  // Returns the index of a higher rank, because only higher ranks connect to this one; for any
  // other rank, returns the number of ranks.
  size_t IndexOf(const rendezvous::Identity& identity) const {
    const auto found = std::find_if(setup_.ranks.begin() + setup_.self + 1, setup_.ranks.end(),
                                    [&](const MeshRank& rank) {
                                      return static_cast<uint32_t>(rank.peer.rank) == identity.rank;
                                    });
    return static_cast<size_t>(found - setup_.ranks.begin());
  }

  // Rejects a second connection of a rank, because the first one may be in use.
  rendezvous::Verdict Judge(const rendezvous::Identity& identity, size_t index) const {
    using enum rendezvous::Verdict;
    if (identity.generation != static_cast<uint32_t>(setup_.generation)) return kOtherGeneration;
    if (index == setup_.ranks.size()) return kUnknownRank;
    return connections_[index].has_value() ? kRankTaken : kAccepted;
  }

  std::string FirstMissing() const {
    size_t index = static_cast<size_t>(setup_.self) + 1;
    while (connections_[index].has_value()) ++index;
    return setup_.ranks[index].peer.name();
  }

  const MeshSetup& setup_;
  const AbortSignal& abort_;
  const Deadline deadline_;
  const rendezvous::Credentials credentials_;
  Connections connections_;
  size_t missing_ = 0;
  Deadline accept_again_ = Deadline::After(0);
  int refused_ = 0;
  std::vector<std::unique_ptr<rendezvous::Link>> callers_;
};

}  // namespace

bool MeshSetup::one_host() const {
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](const MeshRank& rank) { return rank.address == ranks.front().address; });
}

std::vector<std::optional<Connection>> ConnectMesh(const MeshSetup& setup, TcpListener& listener,
                                                   const AbortSignal& abort, Deadline deadline) {
  return Mesh(setup, abort, deadline).Build(listener);
}

}  // namespace hearth::collective
