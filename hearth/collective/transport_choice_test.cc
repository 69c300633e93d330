#include "hearth/collective/transport_choice.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <string>

#include "hearth/base/error.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/collective/testing/ranks_testing.h"
#include "hearth/collective/transport/rdma_device.h"

namespace hearth::collective {
namespace {

// Sets an environment variable in its scope.
class ScopedVariable {
 public:
  explicit ScopedVariable(const char* value, const char* variable = "HEARTH_TRANSPORT")
      : variable_(variable) {
    setenv(variable_, value, 1);
  }
  ~ScopedVariable() { unsetenv(variable_); }

 private:
  const char* const variable_;
};

TEST(Transport, IsSelectedByTheEnvironment) {
  const std::map<const char*, std::string> descriptions = {
      {"auto", "shared memory"}, {"shm", "shared memory"}, {"tcp", "tcp"}};
  for (const auto& [transport, description] : descriptions) {
    const ScopedVariable chosen(transport);
    RunRanks(2, [&, &expected = description](rendezvous::Member& member) {
      const auto groups = Group::Connect(member, {});
      EXPECT_EQ(groups.front()->description(), expected);
      groups.front()->Barrier(Deadline::After(20));
    });
  }
}

TEST(Transport, SharedMemoryAloneIsRejectedBetweenHosts) {
  const ScopedVariable chosen("shm");
  try {
    RunRanks(2, [](rendezvous::Member& member) {
      Group::Connect(member, {.host_id = std::to_string(member.rank())});
    });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("HEARTH_TRANSPORT=shm, but"), std::string::npos)
        << error.message();
  }
}

// Returns the error of two ranks that require an RDMA device but have none.
std::string RdmaError(const GroupOptions& options) {
  try {
    RunRanks(2, [&](rendezvous::Member& member) { Group::Connect(member, options); });
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(Transport, RdmaIsRejectedWithoutAnActiveDevice) {
  if (!FindRdmaDevice().name.empty()) GTEST_SKIP() << "there is a device";
  const std::string reason = "rank 0 on host host0 does not use RDMA: " + FindRdmaDevice().missing;
  EXPECT_EQ(RdmaError({.wire = Medium::kRdma}),
            "RDMA is required, but " + reason + "; use auto or tcp");
  const ScopedVariable chosen("rdma");
  EXPECT_EQ(RdmaError({}), "RDMA is required, but " + reason + "; use auto or tcp");
}

TEST(Transport, BetweenHostsIsRdmaIfEveryRankHasIt) {
  if (const std::string reason = SkipReason(Wiring::kUcx); !reason.empty()) GTEST_SKIP() << reason;
  for (const bool all_have_it : {true, false}) {
    RunRanks(2, [&](rendezvous::Member& member) {
      GroupOptions options = {.ucx_transports = "tcp", .host_id = std::to_string(member.rank())};
      if (!all_have_it && member.rank() == 1) options.wire = Medium::kTcp;
      const auto groups = Group::Connect(member, options);
      EXPECT_EQ(groups.front()->description(), all_have_it ? "rdma" : "tcp");
      groups.front()->Barrier(Deadline::After(20));
    });
  }
}

TEST(Transport, BetweenHostsIsRdmaByADevice) {
  const RdmaDevice device = FindRdmaDevice();
  if (device.name.empty()) GTEST_SKIP() << device.missing;
  RunRanks(2, [](rendezvous::Member& member) {
    const auto groups = Group::Connect(member, {.host_id = std::to_string(member.rank())});
    EXPECT_EQ(groups.front()->description(), "rdma");
    groups.front()->Barrier(Deadline::After(20));
  });
}

TEST(Transport, IsEncryptedIfTheEnvironmentRequiresIt) {
  for (const auto& [choice, description] :
       {std::pair("on", "tcp with TLS"), std::pair("off", "tcp"), std::pair("", "tcp")}) {
    const ScopedVariable chosen("tcp");
    const ScopedVariable tls(choice, "HEARTH_TLS");
    RunRanks(2, [&, &expected = description](rendezvous::Member& member) {
      const auto groups = Group::Connect(member, {});
      EXPECT_EQ(groups.front()->description(), expected);
      groups.front()->Barrier(Deadline::After(20));
    });
  }
}

TEST(Transport, ListensOnThePortsThatTheEnvironmentNames) {
  const ScopedVariable ports("7400-7499", "HEARTH_MESH_PORT");
  EXPECT_EQ(WithChosenTransport({}).listen_port, 7400);
  EXPECT_EQ(WithChosenTransport({}).listen_ports, 100);
  EXPECT_EQ(WithChosenTransport({.listen_port = 7300}).listen_ports, 1);
  for (const char* wrong : {"7400", "7499-7400", "0-9", "7400-7499x", "7400-70000", "some"}) {
    const ScopedVariable none(wrong, "HEARTH_MESH_PORT");
    EXPECT_THROW(WithChosenTransport({}), Error) << wrong;
  }
}

TEST(Transport, EncryptionOnSomeRanksOnlyIsRejected) {
  try {
    RunRanks(2, [](rendezvous::Member& member) {
      Group::Connect(member, {.wire = Medium::kTcp, .encrypt = member.rank() == 1});
    });
    FAIL() << "connected";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message().find("rank 1 on host host1 differ in HEARTH_TLS"), std::string::npos)
        << error.message();
  }
}

TEST(Transport, RdmaIsRejectedIfEncryptionIsRequired) {
  try {
    RunRanks(2, [](rendezvous::Member& member) {
      const GroupOptions options = {
          .wire = Medium::kRdma, .encrypt = true, .ucx_transports = "tcp"};
      Group::Connect(member, options);
    });
    FAIL() << "connected";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("it requires TLS"), std::string::npos) << error.message();
  }
}

TEST(Transport, AnUnknownNameIsRejected) {
  const ScopedVariable chosen("pigeon");
  try {
    RunRanks(1, [](rendezvous::Member& member) { Group::Connect(member, {}); });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message().find("HEARTH_TRANSPORT=pigeon"), std::string::npos);
  }
}

// The choice depends only on the ranks' data, so that all ranks make the same choice.
TEST(ChooseInterHostTransport, UsesRdmaOnlyIfEveryRankHasADevice) {
  std::vector<RankInfo> ranks(2);
  ranks[0].peer = {0, "a"};
  ranks[1].peer = {1, "b"};
  for (RankInfo& rank : ranks) rank.rdma.name = "mlx5_0:1";
  EXPECT_TRUE(ChooseInterHostTransport({}, ranks).rdma);
  ranks[1].rdma = {.name = {}, .missing = "no device is active"};
  const InterHostTransport chosen = ChooseInterHostTransport({}, ranks);
  EXPECT_FALSE(chosen.rdma);
  EXPECT_EQ(chosen.reason, "rank 1 on host b does not use RDMA: no device is active");
  EXPECT_EQ(CodeOf([&] { ChooseInterHostTransport({.wire = Medium::kRdma}, ranks); }),
            ErrorCode::kUnavailable);
}

TEST(ChooseInterHostTransport, RequiresEncryptionOnAllRanksOrNone) {
  std::vector<RankInfo> ranks(2);
  ranks[0].peer = {0, "a"};
  ranks[1].peer = {1, "b"};
  ranks[1].encrypts = true;
  const Error error = Thrown([&] { ChooseInterHostTransport({}, ranks); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), ::testing::HasSubstr("rank 1 on host b differ in HEARTH_TLS"));
}

}  // namespace
}  // namespace hearth::collective
