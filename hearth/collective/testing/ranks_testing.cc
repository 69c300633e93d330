#include "hearth/collective/testing/ranks_testing.h"

#include <cstdlib>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/hmac.h"
#include "hearth/base/socket.h"
#include "hearth/base/thread.h"
#include "hearth/collective/transport/ucx_api.h"
#include "hearth/rendezvous/coordinator.h"

namespace hearth::collective {
namespace {

// Joins all threads; throws the first error, preferring errors other than aborts.
void JoinAll(std::vector<Thread>& threads) {
  std::exception_ptr own;
  std::exception_ptr aborted;
  for (Thread& thread : threads) {
    try {
      thread.Join();
    } catch (const Error& error) {
      std::exception_ptr& first = error.code() == ErrorCode::kAborted ? aborted : own;
      if (first == nullptr) first = std::current_exception();
    }
  }
  if (own != nullptr) std::rethrow_exception(own);
  if (aborted != nullptr) std::rethrow_exception(aborted);
}

void RunRank(const rendezvous::MemberOptions& options,
             const std::function<void(rendezvous::Member&)>& body) {
  rendezvous::Member member(options);
  try {
    member.Reserve(nlohmann::json::object());
    body(member);
    member.Done(nullptr);
  } catch (const Error& error) {
    member.SendFailure({.code = error.code(), .message = error.message()});
    throw;
  }
}

bool OverTcpAlone(Wiring wiring) {
  return wiring == Wiring::kTcp || wiring == Wiring::kTcp6 || wiring == Wiring::kTls;
}
bool Encrypted(Wiring wiring) { return wiring == Wiring::kTls || wiring == Wiring::kTlsPairs; }
std::string Loopback(Wiring wiring) { return wiring == Wiring::kTcp6 ? "::1" : "127.0.0.1"; }

bool OverUcx(Wiring wiring) { return wiring == Wiring::kUcx || wiring == Wiring::kUcxPairs; }

std::string TestedTransports() {
  const char* value = std::getenv("HEARTH_TEST_UCX_TLS");
  return value == nullptr ? "tcp" : value;
}

std::string HostId(Wiring wiring, int rank) {
  const bool in_pairs =
      wiring == Wiring::kPairs || wiring == Wiring::kUcxPairs || wiring == Wiring::kTlsPairs;
  if (in_pairs) return std::to_string(rank / 2);
  if (wiring == Wiring::kInterleaved) return std::to_string(rank % 2);
  return "";
}

void RunThreadGroups(int ranks, const std::function<void(Group&)>& body) {
  auto groups = Group::ConnectThreads(ranks);
  std::vector<Thread> threads;
  for (auto& group : groups) {
    threads.emplace_back("rank", [&body, &group] {
      // The group is destroyed when its thread ends, as at the end of a process.
      const std::unique_ptr<Group> own = std::move(group);
      body(*own);
    });
  }
  JoinAll(threads);
}

}  // namespace

void RunRanks(int ranks, const std::function<void(rendezvous::Member&)>& body) {
  const std::string token = NewToken();
  rendezvous::CoordinatorOptions coordinator_options;
  coordinator_options.world = ranks;
  coordinator_options.token = token;
  rendezvous::Coordinator coordinator(coordinator_options);
  std::vector<Thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    rendezvous::MemberOptions options;
    options.host = coordinator.host();
    options.port = coordinator.port();
    options.token = token;
    options.rank = rank;
    options.world = ranks;
    options.host_name = "host" + std::to_string(rank);
    threads.emplace_back("rank", [options, &body] { RunRank(options, body); });
  }
  JoinAll(threads);
}

std::string NameOf(Wiring wiring) {
  switch (wiring) {
    case Wiring::kThreads:
      return "Threads";
    case Wiring::kShared:
      return "Shared";
    case Wiring::kTcp:
      return "Tcp";
    case Wiring::kTcp6:
      return "Tcp6";
    case Wiring::kTls:
      return "Tls";
    case Wiring::kTlsPairs:
      return "TlsPairs";
    case Wiring::kUcx:
      return "Ucx";
    case Wiring::kUcxPairs:
      return "UcxPairs";
    case Wiring::kPairs:
      return "Pairs";
    case Wiring::kInterleaved:
      return "Interleaved";
  }
  return "Unknown";
}

std::string SkipReason(Wiring wiring) {
  if (OverUcx(wiring)) return ucx::Library().problem;
  try {
    const TcpListener listener(Loopback(wiring));
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

void RunGroups(Wiring wiring, int ranks, const std::function<void(Group&)>& body,
               double timeout_s) {
  if (wiring == Wiring::kThreads) return RunThreadGroups(ranks, body);
  RunRanks(ranks, [&](rendezvous::Member& member) {
    const auto groups = Group::Connect(member, OptionsOf(wiring, member.rank(), timeout_s));
    body(*groups.front());
  });
}

GroupOptions OptionsOf(Wiring wiring, int rank, double timeout_s) {
  const bool shares = !OverTcpAlone(wiring) && wiring != Wiring::kUcx;
  return {.listen_host = Loopback(wiring),
          .timeout_s = timeout_s,
          .shared_memory = shares,
          .wire = OverUcx(wiring) ? Medium::kRdma : Medium::kTcp,
          .encrypt = Encrypted(wiring),
          .ucx_transports = OverUcx(wiring) ? TestedTransports() : "",
          .host_id = HostId(wiring, rank)};
}

}  // namespace hearth::collective
