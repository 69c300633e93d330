#include <utility>
#include <vector>

#include "hearth/collective/connector.h"
#include "hearth/collective/group_impl.h"
#include "hearth/collective/transport/listen_address.h"
#include "hearth/collective/transport_choice.h"
#include "hearth/rendezvous/member.h"

namespace hearth::collective {
namespace {

std::vector<PendingRank> MakePendingRanks(const Identity& identity) {
  const int ranks = identity.options.local_ranks;
  Require(ranks >= 1, ErrorCode::kInvalidArgument, "a process needs at least 1 rank, not {}",
          ranks);
  std::vector<PendingRank> pending;
  for (int i = 0; i < ranks; ++i) pending.push_back(MakePendingRank(identity));
  return pending;
}

// Environment variables configure all ranks of a job without a change of the program, which may
// belong to a framework.
GroupOptions WithEnvironment(const GroupOptions& options) {
  GroupOptions chosen = WithChosenTransport(options);
  chosen.listen_host = ListenAddress(options.listen_host);
  chosen.stall_s = StallSeconds(options.stall_s);
  return chosen;
}

}  // namespace

std::vector<std::unique_ptr<Group>> Group::Connect(rendezvous::Member& member,
                                                   const GroupOptions& options) {
  const Deadline deadline = Deadline::After(options.timeout_s);
  const Identity identity = {.options = WithEnvironment(options),
                             .host = member.host_name(),
                             .reporter = MakeStepReporter(member),
                             .token = member.token(),
                             .generation = static_cast<int>(member.generation())};
  std::vector<PendingRank> pending = MakePendingRanks(identity);
  // Subscribes before the first gather, so that the failure of a rank ends this rank's wait for it.
  // The groups keep the subscriptions, so that a later failure ends their operations too.
  std::vector<rendezvous::FailureWatch::Subscription> subscriptions;
  for (const PendingRank& rank : pending) {
    subscriptions.push_back(member.OnFailure(
        [abort = rank.abort](const rendezvous::Failure& f) { abort->Raise(f.Describe()); }));
  }
  const Setup setup = {.identity = identity,
                       .gather =
                           [&](const std::string& name, const nlohmann::json& value) {
                             return member.AllGather(name, value, deadline);
                           },
                       .process = member.rank(),
                       .deadline = deadline};
  auto groups = Connector(setup, pending).Connect();
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i]->impl_->failure_subscription = std::move(subscriptions[i]);
  }
  return groups;
}

std::vector<std::unique_ptr<Group>> Group::ConnectThreads(int ranks) {
  // Threads share memory even without this setting. Here it only excludes NCCL (OpenDevice).
  const bool only_shared = WithChosenTransport({}).only_shared_memory;
  const Identity identity = {.options = {.stall_s = StallSeconds(GroupOptions().stall_s),
                                         .local_ranks = ranks,
                                         .only_shared_memory = only_shared},
                             .host = "this process",
                             .reporter = MakeThreadStepReporter()};
  std::vector<PendingRank> pending = MakePendingRanks(identity);
  const Setup setup = {
      .identity = identity,
      .gather = [](const std::string&,
                   const nlohmann::json& value) { return std::vector<nlohmann::json>{value}; },
      .deadline = Deadline::After(identity.options.timeout_s)};
  return Connector(setup, pending).Connect();
}

}  // namespace hearth::collective
