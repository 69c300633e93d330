#include "hearth/collective/connector.h"

#include <gmock/gmock.h>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/base/thread.h"

namespace hearth::collective {
namespace {

// A process with `ranks` ranks that exchanges its data through `gather`.
std::vector<std::unique_ptr<Group>> ConnectBy(const Gather& gather, int ranks,
                                              const std::string& token = "") {
  const Identity identity = {.options = {.local_ranks = ranks},
                             .host = "here",
                             .reporter = MakeThreadStepReporter(),
                             .token = token};
  std::vector<PendingRank> drafts;
  for (int i = 0; i < ranks; ++i) drafts.push_back(MakePendingRank(identity));
  const Setup setup = {.identity = identity, .gather = gather, .deadline = Soon()};
  return Connector(setup, drafts).Connect();
}

std::vector<nlohmann::json> OnlyThisProcess(const std::string&, const nlohmann::json& value) {
  return {value};
}

TEST(ConnectorTest, RanksOfOneProcessShareMemoryAndAName) {
  const auto groups = ConnectBy(OnlyThisProcess, 3);
  ASSERT_EQ(groups.size(), 3u);
  std::vector<Thread> threads;
  for (const auto& group : groups) {
    EXPECT_EQ(group->description(), "shared memory");
    EXPECT_EQ(group->host_index(), group->rank());
    threads.emplace_back("rank", [&group] {
      float value = 1;
      group->AllReduce(&value, 1, DataType::kFloat32, Op::kSum, Soon());
      EXPECT_EQ(value, 3);
    });
  }
  for (Thread& thread : threads) thread.Join();
}

// The first gather exchanges connection data, the second one which ranks can open whose memory, and
// the last one waits until all ranks are connected. Each of them may fail.
TEST(ConnectorTest, AFailedGatherEndsTheConnecting) {
  for (int failing = 0; failing < 3; ++failing) {
    int gathers = 0;
    const Gather gather = [&](const std::string& name, const nlohmann::json& value) {
      if (gathers++ == failing) Throw(ErrorCode::kDeadlineExceeded, "rank 1 did not arrive");
      return OnlyThisProcess(name, value);
    };
    const Error error = Thrown([&] { ConnectBy(gather, 2); });
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
    EXPECT_EQ(error.message(), "rank 1 did not arrive");
  }
}

TEST(ConnectorTest, InvalidConnectionDataNamesItsRank) {
  const Gather gather = [](const std::string&, const nlohmann::json& value) {
    nlohmann::json other = value;
    other[0]["port"] = "none";
    return std::vector<nlohmann::json>{value, other};
  };
  const Error error = Thrown([&] { ConnectBy(gather, 1, "token"); });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.message(), ::testing::HasSubstr("connection data of rank 1"));
}

}  // namespace
}  // namespace hearth::collective
