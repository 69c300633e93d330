// Tests that a group leaks no descriptor, thread, shared memory or pinned memory, over each
// transport and however the group ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/hmac.h"
#include "hearth/collective/operation/abort_signal.h"
#include "hearth/collective/queue.h"
#include "hearth/collective/shared_memory/shared_page.h"
#include "hearth/collective/testing/device_testing.h"
#include "hearth/collective/testing/failure_testing.h"
#include "hearth/collective/testing/process_resources_testing.h"
#include "hearth/collective/testing/ranks_testing.h"
#include "hearth/rendezvous/coordinator.h"

namespace hearth::collective {
namespace {

constexpr size_t kFloats = 1 << 20;  // large enough for the ring and for more than one piece
constexpr const char* kRankVariable = "HEARTH_TEST_RANK";

void SumTwice(Group& group) {
  std::vector<float> own(kFloats, 1);
  group.AllReduce(own.data(), own.size(), DataType::kFloat32, Op::kSum, Deadline::After(kLong));
  auto* shared = static_cast<float*>(group.Allocate(kFloats * sizeof(float)));
  group.AllReduce(shared, kFloats, DataType::kFloat32, Op::kSum, Deadline::After(kLong));
}

void EndNormally(Wiring wiring) {
  RunGroups(wiring, 3, [](Group& group) {
    SumTwice(group);
    const auto part = group.Split(group.rank() % 2, Deadline::After(kLong));
    Queue queue(*part);
    queue.Submit({}).Wait(Deadline::After(kLong));
  });
}

// A rank fails between two operations while the other ranks are in the second one.
void EndByFailure(Wiring wiring) {
  const auto body = [](Group& group) {
    SumTwice(group);
    Require(group.rank() != 1, ErrorCode::kDataLoss, "layer conv1: no weights");
    SumTwice(group);
  };
  EXPECT_THROW(RunGroups(wiring, 3, body), Error);
}

rendezvous::MemberOptions MemberOf(const std::string& host, int port, const std::string& token,
                                   int rank) {
  rendezvous::MemberOptions options;
  options.host = host;
  options.port = port;
  options.token = token;
  options.rank = rank;
  options.world = 2;
  options.host_name = "host" + std::to_string(rank);
  return options;
}

// Starts another process of this program as rank 1, which runs until it is killed.
pid_t StartRank1(const rendezvous::Coordinator& coordinator, const std::string& token,
                 Wiring wiring) {
  const std::string where = fmt::format("{}={} {} {} {}", kRankVariable, coordinator.host(),
                                        coordinator.port(), token, static_cast<int>(wiring));
  std::vector<char*> environment = {const_cast<char*>(where.c_str())};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.push_back(*variable);
  }
  environment.push_back(nullptr);
  const char* const arguments[] = {"rank 1", "--gtest_also_run_disabled_tests",
                                   "--gtest_filter=*DISABLED_Rank1*", nullptr};
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr,
                                   const_cast<char* const*>(arguments), environment.data());
  if (failed != 0) ThrowErrno(failed, "starting a rank");
  return pid;
}

// Body of rank 1's process.
TEST(ResourceLeakRank, DISABLED_Rank1) {
  const char* given = std::getenv(kRankVariable);
  if (given == nullptr) GTEST_SKIP() << "another test starts it";
  std::istringstream words(given);
  std::string host, token;
  int port = 0, wiring = 0;
  words >> host >> port >> token >> wiring;
  rendezvous::Member member(MemberOf(host, port, token, 1));
  member.Reserve(nlohmann::json::object());
  const auto groups = Group::Connect(member, OptionsOf(static_cast<Wiring>(wiring), 1));
  while (true) SumTwice(*groups.front());
}

void EndByKill(Wiring wiring) {
  const std::string token = NewToken();
  rendezvous::CoordinatorOptions options;
  options.world = 2;
  options.token = token;
  rendezvous::Coordinator coordinator(options);
  const pid_t pid = StartRank1(coordinator, token, wiring);
  rendezvous::Member member(MemberOf(coordinator.host(), coordinator.port(), token, 0));
  member.Reserve(nlohmann::json::object());
  const auto groups = Group::Connect(member, OptionsOf(wiring, 0));
  for (int i = 0; i < 3; ++i) SumTwice(*groups.front());
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  EXPECT_THROW(while (true) SumTwice(*groups.front()), Error);
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
}

struct Ending {
  const char* name;
  void (*run)(Wiring wiring);
};

class ResourceLeaks : public ::testing::TestWithParam<std::tuple<Wiring, Ending>> {};

TEST_P(ResourceLeaks, AreAbsent) {
  const auto& [wiring, ending] = GetParam();
  if (const std::string reason = SkipReason(wiring); !reason.empty()) GTEST_SKIP() << reason;
  // Creates a group first, because libraries allocate process-wide resources with the first one.
  EndNormally(wiring);
  const ProcessResources before = CurrentResources();
  for (int i = 0; i < 2; ++i) ending.run(wiring);
  EXPECT_EQ(ResourcesSoon(before), before);
}

INSTANTIATE_TEST_SUITE_P(Transports, ResourceLeaks,
                         ::testing::Combine(::testing::Values(Wiring::kShared, Wiring::kTcp,
                                                              Wiring::kTls, Wiring::kUcx,
                                                              Wiring::kPairs, Wiring::kUcxPairs),
                                            ::testing::Values(Ending{"EndedWell", EndNormally},
                                                              Ending{"Failed", EndByFailure},
                                                              Ending{"Killed", EndByKill})),
                         [](const auto& info) {
                           return NameOf(std::get<0>(info.param)) + std::get<1>(info.param).name;
                         });

// Checks that leaks are counted; otherwise the tests above could not fail.
TEST(ProcessResources, CountsEachKind) {
  const ProcessResources before = CurrentResources();
  const OwnPage page = CreateSharedPage();
  const TcpListener listener("127.0.0.1");
  const AbortSignal signal;
  ProcessResources expected = before;
  expected["socket"] += 1;
  expected["memfd"] += 1;
  expected["mapping of a memfd"] += 1;
  expected["anon_inode:[eventfd]"] += 1;
  EXPECT_EQ(CurrentResources(), expected);
}

TEST(DeviceResourceLeaks, LeaveNoStreamsOrCommunicators) {
  const auto failing = [](Group& group) {
    const DeviceArray<float> data(std::vector<float>(100));
    Request request = {.operation = Operation::kAllReduce,
                       .output = data.get(),
                       .count = data.size(),
                       .memory = Memory::kDevice};
    group.Run(request, Deadline::After(kLong));
    if (group.rank() == 1) StandIn::Get().hang(1);
    try {
      group.Run(request, Deadline::After(0.2));
    } catch (const Error&) {
      StandIn::Get().heal();
    }
  };
  RunOnDevices(Layout::kHosts, 2, [](Group&) {});
  const ProcessResources before = ResourcesSoon({}, 0.1);
  RunOnDevices(Layout::kHosts, 2, failing);
  RunOnDevices(Layout::kOneHost, 2, [](Group&) {});
  EXPECT_EQ(ResourcesSoon(before), before);
  EXPECT_EQ(StandIn::Get().streams(), 0);
  EXPECT_EQ(StandIn::Get().communicators(), 0);
}

}  // namespace
}  // namespace hearth::collective
