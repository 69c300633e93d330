#include "hearth/collective/tcp_mesh.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"

namespace hearth::collective {
namespace {

// A stranger that says nothing delays the ranks behind it no longer than this.
constexpr double kHandshakeSeconds = 2;

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
    // In this order nobody waits in a circle: rank 0 only accepts, and whoever has reached all
    // ranks before it accepts too.
    for (int index = 0; index < setup_.self; ++index) ConnectTo(index);
    size_t missing = setup_.ranks.size() - static_cast<size_t>(setup_.self) - 1;
    while (missing > 0) {
      if (AcceptOne(listener)) --missing;
    }
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
      throw Error(
          error.code(),
          fmt::format("connecting to {} at {}:{}", rank.peer.name(), rank.address, rank.port),
          error);
    }
  }

  bool AcceptOne(TcpListener& listener) {
    AwaitCaller(listener);
    Connection connection = listener.Accept(deadline_);
    try {
      const Deadline soon = deadline_.remaining() < kHandshakeSeconds
                                ? deadline_
                                : Deadline::After(kHandshakeSeconds);
      const rendezvous::Identity identity = rendezvous::AcceptHandshake(
          connection, credentials_, static_cast<uint32_t>(setup_.generation), soon);
      connections_[IndexOf(identity)] = std::move(connection);
      return true;
    } catch (const Error& error) {
      log::Warning("refused a data connection from {}: {}", connection.peer(), error.what());
      return false;
    }
  }

  size_t IndexOf(const rendezvous::Identity& identity) const {
    const auto found = std::find_if(setup_.ranks.begin() + setup_.self + 1, setup_.ranks.end(),
                                    [&](const MeshRank& rank) {
                                      return static_cast<uint32_t>(rank.peer.rank) == identity.rank;
                                    });
    Require(found != setup_.ranks.end(), ErrorCode::kPermissionDenied,
            "rank {} does not belong here", identity.rank);
    const auto index = static_cast<size_t>(found - setup_.ranks.begin());
    Require(!connections_[index].has_value(), ErrorCode::kPermissionDenied,
            "rank {} is connected already", identity.rank);
    return index;
  }

  void AwaitCaller(const TcpListener& listener) const {
    pollfd entries[2] = {{listener.fd(), POLLIN, 0}, {abort_.fd(), POLLIN, 0}};
    while (true) {
      const int ready = ::poll(entries, 2, deadline_.poll_timeout_ms());
      abort_.ThrowIfRaised();
      if (ready > 0) return;
      if (ready < 0 && errno != EINTR) ThrowErrno(errno, "waiting for data connections");
      Require(!deadline_.expired(), ErrorCode::kDeadlineExceeded, "{} did not connect in time",
              FirstMissing());
    }
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
};

}  // namespace

std::vector<std::optional<Connection>> ConnectMesh(const MeshSetup& setup, TcpListener& listener,
                                                   const AbortSignal& abort, Deadline deadline) {
  return Mesh(setup, abort, deadline).Build(listener);
}

}  // namespace hearth::collective
