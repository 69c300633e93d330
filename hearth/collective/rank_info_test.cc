#include "hearth/collective/rank_info.h"

#include <gmock/gmock.h>

#include "hearth/base/testing/error_testing.h"

namespace hearth::collective {
namespace {

RankInfo Example() {
  RankInfo info;
  info.peer = {3, "host3"};
  info.host_id = "rack 7";
  info.shares_memory = false;
  info.page = {.pid = 42, .fd = 5, .nonce = std::string("\0\xff nonce", 8)};
  info.address = "10.0.0.3";
  info.port = 7400;
  info.rdma = {.name = "mlx5_0:1", .missing = ""};
  info.encrypts = true;
  return info;
}

TEST(RankInfoTest, ArrivesAsItWasSent) {
  const nlohmann::json sent = Example().ToJson();
  const RankInfo received = RankInfo::FromJson(nlohmann::json::parse(sent.dump()), 3);
  EXPECT_EQ(received.ToJson(), sent);
  EXPECT_EQ(received.peer.rank, 3);
  EXPECT_EQ(received.page.nonce, Example().page.nonce);
}

// The data comes from another process, so it may be invalid.
TEST(RankInfoTest, NamesTheRankWhoseDataIsIncompleteOrOfAnotherType) {
  const nlohmann::json whole = Example().ToJson();
  for (const auto& [field, value] : whole.items()) {
    nlohmann::json without = whole, other = whole;
    without.erase(field);
    other[field] = nlohmann::json::array();
    for (const nlohmann::json& damaged : {without, other}) {
      const Error error = Thrown([&] { RankInfo::FromJson(damaged, 3); });
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << field;
      EXPECT_THAT(error.message(), ::testing::HasSubstr("rank 3")) << field;
    }
  }
}

TEST(RankInfoTest, NamesTheRankWhoseNonceIsNotHex) {
  for (const char* nonce : {"a", "0g", "zz", "0x"}) {
    nlohmann::json damaged = Example().ToJson();
    damaged["nonce"] = nonce;
    const Error error = Thrown([&] { RankInfo::FromJson(damaged, 3); });
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << nonce;
    EXPECT_THAT(error.message(), ::testing::HasSubstr("rank 3")) << nonce;
  }
}

TEST(RankInfoTest, OtherJsonThanAnObjectIsDataLoss) {
  for (const char* text : {"null", "[]", "7", "\"text\"", "{}"}) {
    EXPECT_EQ(CodeOf([&] { RankInfo::FromJson(nlohmann::json::parse(text), 0); }),
              ErrorCode::kDataLoss)
        << text;
  }
}

}  // namespace
}  // namespace hearth::collective
