#include "hearth/collective/connector.h"

#include <functional>
#include <numeric>
#include <utility>

#include "hearth/base/hmac.h"
#include "hearth/base/log.h"
#include "hearth/base/sha256.h"
#include "hearth/base/thread.h"
#include "hearth/base/timeline.h"
#include "hearth/collective/group_impl.h"
#include "hearth/collective/hierarchical_backend.h"
#include "hearth/collective/shared_memory/shared_backend.h"
#include "hearth/collective/transport/tcp_transport.h"
#include "hearth/collective/transport/tls_stream.h"
#include "hearth/collective/transport/ucx_transport.h"

namespace hearth::collective {
namespace {

constexpr size_t kNameDigits = 16;

// Runs each index in a separate thread, because the ranks of one process wait for each other.
void ForEachIndex(size_t count, const std::function<void(size_t)>& body) {
  std::vector<Thread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back("connect", [&body, i] { body(i); });
  for (Thread& thread : threads) thread.Join();
}

}  // namespace

PendingRank MakePendingRank(const Identity& identity) {
  PendingRank pending;
  if (identity.token.empty()) return pending;
  const GroupOptions& options = identity.options;
  pending.listener = std::make_unique<TcpListener>(
      options.listen_host,
      PortRange{options.listen_port, options.listen_ports, "spark.hearth.mesh.port"});
  return pending;
}

struct Connector::PartialRank {
  std::unique_ptr<Group::Impl> impl;
  HierarchicalBackend::Parts parts;  // empty if the backend needs none
};

// The initializers of table_ and topology_ gather data (kGathers), so their order must be the same
// on all ranks.
Connector::Connector(const Setup& setup, std::vector<PendingRank>& pending)
    : setup_(setup),
      pending_(pending),
      table_(ExchangeInfos(setup.gather, setup.process, OwnInfos())),
      topology_(ExchangeReach(setup.gather, table_, static_cast<int>(pending.size()))),
      inter_host_(ChooseInterHostTransport(setup.identity.options, table_.ranks)),
      description_(topology_.Describe(inter_host_.Name())),
      // Rank 0's nonce identifies the group. The name contains only digits of its hash, because the
      // nonce itself must stay secret: only ranks that can read the shared memory may know it.
      name_(Sha256Hex(Info(0).page.nonce).substr(0, kNameDigits)) {}

std::vector<std::unique_ptr<Group>> Connector::Connect() {
  Require(!setup_.identity.options.only_shared_memory || topology_.one_host(),
          ErrorCode::kInvalidArgument,
          "HEARTH_TRANSPORT=shm, but the ranks are on more than one host or cannot share memory: "
          "they would communicate by {}; use auto",
          description_);
  // Rank 0 logs one line per group.
  if (table_.first_local == 0 && table_.ranks.size() > 1) {
    log::Info("{} ranks communicate by {}{}", table_.ranks.size(), description_,
              topology_.one_host() ? "" : " (" + inter_host_.reason + ")");
  }
  if (!setup_.identity.token.empty()) timeline::NameProcess(Info(table_.first_local).peer.name());
  std::vector<PartialRank> partial_ranks(pending_.size());
  ForEachIndex(partial_ranks.size(), [&](size_t i) { partial_ranks[i] = ConnectPart(i); });
  // All ranks must arrive here before any continues, for two reasons. Peers open the pages through
  // the descriptors of the pending ranks, which are closed later. And a listener must not receive
  // connections for the mesh of all ranks while it still accepts connections for the mesh across
  // hosts.
  setup_.gather("collective connected", nullptr);
  ForEachIndex(partial_ranks.size(), [&](size_t i) { ConnectAll(partial_ranks[i], pending_[i]); });
  std::vector<std::unique_ptr<Group>> groups;
  for (PartialRank& partial : partial_ranks) {
    partial.impl->stalls = MakeStallWatch(partial.impl->rank);
    groups.push_back(std::make_unique<Group>(std::move(partial.impl)));
  }
  return groups;
}

std::vector<RankInfo> Connector::OwnInfos() const {
  std::vector<RankInfo> infos;
  for (const PendingRank& pending : pending_) {
    RankInfo& info = infos.emplace_back();
    info.peer.host = setup_.identity.host;
    info.host_id = setup_.identity.options.host_id;
    info.shares_memory = setup_.identity.options.shared_memory;
    info.page = pending.page.address;
    info.address = setup_.identity.options.listen_host;
    if (pending.listener == nullptr) continue;
    info.port = pending.listener->port();
    info.rdma = OwnRdmaDevice(setup_.identity.options);
    info.encrypts = setup_.identity.options.encrypt;
  }
  return infos;
}

Connector::PartialRank Connector::ConnectPart(size_t local) {
  PendingRank& pending = pending_[local];
  PartialRank partial = {.impl = std::make_unique<Group::Impl>(), .parts = {}};
  Group::Impl& impl = *partial.impl;
  impl.rank = table_.first_local + static_cast<int>(local);
  impl.world = topology_.world();
  impl.identity = setup_.identity;
  impl.name = name_;
  impl.description = description_;
  impl.abort = pending.abort;
  impl.local = MakeLocalRanks(impl.rank, pending);
  impl.arena = std::make_unique<Arena>(*impl.local);
  impl.backend = MakeBackend(partial, pending);
  return partial;
}

void Connector::ConnectAll(PartialRank& partial, const PendingRank& pending) {
  if (partial.parts.within == nullptr) return;
  partial.parts.direct = MakeMessages(partial.impl->rank, AllRanks(), "all", pending);
  partial.impl->backend = std::make_unique<HierarchicalBackend>(topology_, partial.impl->rank,
                                                                std::move(partial.parts));
}

std::unique_ptr<LocalRanks> Connector::MakeLocalRanks(int self, PendingRank& pending) {
  std::vector<LocalRanks::Member> members;
  for (const int rank : topology_.host_of(self)) {
    const RankInfo& info = Info(rank);
    if (rank == self) {
      members.push_back({info.peer, info.page.pid, std::move(pending.page.mapping)});
      continue;
    }
    std::optional<Mapping> page = OpenSharedPage(info.page);
    Require(page.has_value(), ErrorCode::kUnavailable, "the shared memory of {} cannot be opened",
            info.peer.name());
    members.push_back({info.peer, info.page.pid, std::move(*page)});
  }
  return std::make_unique<LocalRanks>(std::move(members), topology_.Find(self).index,
                                      pending.abort);
}

// Returns null if the group has several hosts, of which at least one has several ranks: ConnectAll
// then builds a hierarchical backend.
std::unique_ptr<Backend> Connector::MakeBackend(PartialRank& partial, PendingRank& pending) {
  Group::Impl& impl = *partial.impl;
  if (topology_.one_rank_per_host() && topology_.world() > 1) {
    return MakeMessages(impl.rank, AllRanks(), "all", pending);
  }
  auto within = std::make_unique<SharedBackend>(*impl.local, *impl.arena, setup_.deadline);
  if (topology_.one_host()) return within;
  partial.parts.within = std::move(within);
  const int index = topology_.Find(impl.rank).index;
  if (index < topology_.parts()) {
    partial.parts.across = MakeMessages(impl.rank, topology_.Across(index), "across", pending);
  }
  return nullptr;
}

std::unique_ptr<StallWatch> Connector::MakeStallWatch(int self) const {
  if (topology_.world() == 1) return nullptr;
  std::vector<Peer> ranks;
  for (const RankInfo& info : table_.ranks) ranks.push_back(info.peer);
  return std::make_unique<StallWatch>(name_, std::move(ranks), self,
                                      setup_.identity.options.stall_s, setup_.identity.reporter);
}

std::vector<int> Connector::AllRanks() const {
  std::vector<int> ranks(static_cast<size_t>(topology_.world()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::unique_ptr<MessageBackend> Connector::MakeMessages(int self, const std::vector<int>& ranks,
                                                        const std::string& kind,
                                                        const PendingRank& pending) {
  MeshSetup mesh = {.token = setup_.identity.token,
                    // Rank 0's nonce is unique, and all ranks know it.
                    .session = HexEncode(Info(0).page.nonce) + " " + kind,
                    .generation = setup_.identity.generation};
  std::vector<Peer> peers;
  for (const int rank : ranks) {
    if (rank == self) mesh.self = static_cast<int>(peers.size());
    const RankInfo& info = Info(rank);
    peers.push_back(info.peer);
    mesh.ranks.push_back({info.peer, info.address, info.port});
  }
  auto connections = ConnectMesh(mesh, *pending.listener, *pending.abort, setup_.deadline);
  if (inter_host_.rdma) {
    return std::make_unique<MessageBackend>(
        std::make_unique<UcxTransport>(std::move(connections), peers, mesh.self, pending.abort,
                                       UcxTransports(setup_.identity.options), setup_.deadline),
        /*one_host=*/false);
  }
  return std::make_unique<MessageBackend>(
      std::make_unique<TcpTransport>(MakeStreams(std::move(connections), peers, mesh), peers,
                                     mesh.self, pending.abort),
      mesh.one_host());
}

// All ranks process their peers in rank order, so that no cycle of ranks waits for handshakes.
std::vector<std::unique_ptr<PeerStream>> Connector::MakeStreams(
    std::vector<std::optional<Connection>> connections, const std::vector<Peer>& peers,
    const MeshSetup& mesh) const {
  const std::string key = inter_host_.encrypted ? TlsKey(mesh.token, mesh.session) : "";
  std::vector<std::unique_ptr<PeerStream>> streams(peers.size());
  for (size_t i = 0; i < peers.size(); ++i) {
    if (!connections[i].has_value()) continue;
    // As in ConnectMesh, where the higher rank connects to the lower one, the higher rank is the
    // client.
    const TlsSide side = static_cast<int>(i) < mesh.self ? TlsSide::kClient : TlsSide::kServer;
    streams[i] = inter_host_.encrypted ? MakeTlsStream(std::move(*connections[i]), peers[i], side,
                                                       key, setup_.deadline)
                                       : MakePlainStream(std::move(*connections[i]), peers[i]);
  }
  return streams;
}

}  // namespace hearth::collective
