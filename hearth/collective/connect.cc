#include <utility>
#include <vector>

#include "hearth/base/hmac.h"
#include "hearth/base/log.h"
#include "hearth/base/thread.h"
#include "hearth/collective/group_impl.h"
#include "hearth/collective/hierarchical_backend.h"
#include "hearth/collective/message_backend.h"
#include "hearth/collective/roster.h"
#include "hearth/collective/shared_backend.h"
#include "hearth/collective/tcp_mesh.h"
#include "hearth/collective/tcp_transport.h"
#include "hearth/collective/topology.h"
#include "hearth/rendezvous/member.h"

namespace hearth::collective {
namespace {

// What one process needs to connect its ranks.
struct Setup {
  GroupOptions options;
  Gather gather;
  int process = 0;
  std::string host;
  std::string token = {};
  int generation = 0;
};

// One rank of this process on its way to a Group.
struct Draft {
  OwnPage page = CreateSharedPage();
  std::unique_ptr<TcpListener> listener;
  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
};

class Connector {
 public:
  Connector(const Setup& setup, std::vector<Draft>& drafts)
      : setup_(setup),
        drafts_(drafts),
        deadline_(Deadline::After(setup.options.timeout_s)),
        roster_(ExchangeInfos(setup.gather, setup.process, OwnInfos())),
        topology_(ExchangeReach(setup.gather, roster_, static_cast<int>(drafts.size()))) {}

  std::vector<std::unique_ptr<Group>> Connect() {
    if (roster_.first_local == 0 && roster_.ranks.size() > 1) {
      log::Info("{} ranks talk over {}", roster_.ranks.size(), topology_.Describe());
    }
    std::vector<std::unique_ptr<Group>> groups(drafts_.size());
    {
      // The ranks of one process wait for each other too.
      std::vector<Thread> threads;
      for (size_t i = 0; i < groups.size(); ++i) {
        threads.emplace_back("connect", [this, &groups, i] { groups[i] = ConnectRank(i); });
      }
      for (Thread& thread : threads) thread.Join();
    }
    // Peers open the pages by the drafts' descriptors, which close soon.
    setup_.gather("collective connected", nullptr);
    return groups;
  }

 private:
  std::vector<RankInfo> OwnInfos() const {
    std::vector<RankInfo> infos;
    for (const Draft& draft : drafts_) {
      RankInfo& info = infos.emplace_back();
      info.peer.host = setup_.host;
      info.host_id = setup_.options.host_id;
      info.shares_memory = setup_.options.shared_memory;
      info.page = draft.page.address;
      info.address = setup_.options.listen_host;
      if (draft.listener != nullptr) info.port = draft.listener->port();
    }
    return infos;
  }

  std::unique_ptr<Group> ConnectRank(size_t local) {
    Draft& draft = drafts_[local];
    auto impl = std::make_unique<Group::Impl>();
    impl->rank = roster_.first_local + static_cast<int>(local);
    impl->world = topology_.world();
    impl->timeout_s = setup_.options.timeout_s;
    impl->description = topology_.Describe();
    impl->abort = draft.abort;
    impl->local = MakeLocalRanks(impl->rank, draft);
    impl->arena = std::make_unique<Arena>(*impl->local);
    impl->backend = MakeBackend(*impl, draft);
    return std::make_unique<Group>(std::move(impl));
  }

  std::unique_ptr<LocalRanks> MakeLocalRanks(int self, Draft& draft) {
    std::vector<LocalRanks::Member> members;
    for (const int rank : topology_.host_of(self)) {
      const RankInfo& info = Info(rank);
      if (rank == self) {
        members.push_back({info.peer, info.page.pid, std::move(draft.page.mapping)});
        continue;
      }
      std::optional<Mapping> page = OpenSharedPage(info.page);
      Require(page.has_value(), ErrorCode::kUnavailable, "the shared page of {} is gone",
              info.peer.name());
      members.push_back({info.peer, info.page.pid, std::move(*page)});
    }
    return std::make_unique<LocalRanks>(std::move(members), topology_.Find(self).index,
                                        draft.abort);
  }

  std::unique_ptr<Backend> MakeBackend(Group::Impl& impl, Draft& draft) {
    if (topology_.one_rank_per_host() && topology_.world() > 1) {
      std::vector<int> everyone;
      for (int rank = 0; rank < topology_.world(); ++rank) everyone.push_back(rank);
      return MakeMessages(impl.rank, everyone, draft);
    }
    auto within = std::make_unique<SharedBackend>(*impl.local, *impl.arena, deadline_);
    if (topology_.one_host()) return within;
    const int index = topology_.Find(impl.rank).index;
    std::unique_ptr<MessageBackend> across;
    if (index < topology_.parts()) {
      across = MakeMessages(impl.rank, topology_.Across(index), draft);
    }
    return std::make_unique<HierarchicalBackend>(topology_, impl.rank, std::move(within),
                                                 std::move(across));
  }

  std::unique_ptr<MessageBackend> MakeMessages(int self, const std::vector<int>& ranks,
                                               Draft& draft) {
    MeshSetup mesh = {.token = setup_.token,
                      // Any nonce of this roster is new and known to all.
                      .session = HexEncode(Info(0).page.nonce),
                      .generation = setup_.generation};
    std::vector<Peer> peers;
    for (const int rank : ranks) {
      if (rank == self) mesh.self = static_cast<int>(peers.size());
      peers.push_back(Info(rank).peer);
      mesh.ranks.push_back({Info(rank).peer, Info(rank).address, Info(rank).port});
    }
    auto connections = ConnectMesh(mesh, *draft.listener, *draft.abort, deadline_);
    return std::make_unique<MessageBackend>(
        std::make_unique<TcpTransport>(std::move(connections), peers, mesh.self, draft.abort));
  }

  const RankInfo& Info(int rank) const { return roster_.ranks[static_cast<size_t>(rank)]; }

  const Setup& setup_;
  std::vector<Draft>& drafts_;
  const Deadline deadline_;
  const Roster roster_;
  const Topology topology_;
};

std::vector<Draft> MakeDrafts(int ranks) {
  Require(ranks >= 1, ErrorCode::kInvalidArgument, "a process needs at least 1 rank, not {}",
          ranks);
  return std::vector<Draft>(static_cast<size_t>(ranks));
}

// On the first port that nobody has.
std::unique_ptr<TcpListener> Listen(const GroupOptions& options) {
  const int last = options.listen_port + options.listen_ports - 1;
  for (int port = options.listen_port;; ++port) {
    try {
      return std::make_unique<TcpListener>(options.listen_host, port);
    } catch (const Error& error) {
      if (port < last) continue;
      Require(options.listen_port == 0, error.code(),
              "no port of spark.hearth.mesh.port ({}-{}) is free: {}", options.listen_port, last,
              error.message());
      throw;
    }
  }
}

}  // namespace

std::vector<std::unique_ptr<Group>> Group::Connect(rendezvous::Member& member,
                                                   const GroupOptions& options) {
  const Deadline deadline = Deadline::After(options.timeout_s);
  std::vector<Draft> drafts = MakeDrafts(options.local_ranks);
  std::vector<rendezvous::FailureWatch::Subscription> subscriptions;
  for (Draft& draft : drafts) {
    draft.listener = Listen(options);
    subscriptions.push_back(member.OnFailure(
        [abort = draft.abort](const rendezvous::Failure& f) { abort->Raise(f.Describe()); }));
  }
  Setup setup = {.options = options,
                 .gather =
                     [&](const std::string& name, const nlohmann::json& value) {
                       return member.AllGather(name, value, deadline);
                     },
                 .process = member.rank(),
                 .host = member.host_name(),
                 .token = member.token(),
                 .generation = static_cast<int>(member.generation())};
  auto groups = Connector(setup, drafts).Connect();
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i]->impl_->failure_subscription = std::move(subscriptions[i]);
  }
  return groups;
}

std::vector<std::unique_ptr<Group>> Group::ConnectThreads(int ranks) {
  std::vector<Draft> drafts = MakeDrafts(ranks);
  Setup setup = {
      .options = {.local_ranks = ranks},
      .gather = [](const std::string&,
                   const nlohmann::json& value) { return std::vector<nlohmann::json>{value}; },
      .host = "this process"};
  return Connector(setup, drafts).Connect();
}

}  // namespace hearth::collective
