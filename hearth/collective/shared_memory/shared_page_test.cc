#include "hearth/collective/shared_memory/shared_page.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hearth/base/error.h"
#include "hearth/collective/rank_info.h"

namespace hearth::collective {
namespace {

TEST(SharedPage, AnotherMappingSharesTheMemory) {
  const OwnPage own = CreateSharedPage();
  const auto other = OpenSharedPage(own.address);
  ASSERT_TRUE(other.has_value());
  PageIn(own.mapping).arrived.store(7);
  EXPECT_EQ(PageIn(*other).arrived.load(), 7U);
}

TEST(SharedPage, AnotherProcessCanOpenIt) {
  const OwnPage own = CreateSharedPage();
  const pid_t child = ::fork();
  if (child == 0) {
    const auto page = OpenSharedPage(own.address);
    if (page.has_value()) PageIn(*page).arrived.store(9);
    ::_exit(page.has_value() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(PageIn(own.mapping).arrived.load(), 9U);
}

TEST(SharedPage, AWrongNonceIsRejected) {
  const OwnPage own = CreateSharedPage();
  PageAddress address = own.address;
  address.nonce[0] = static_cast<char>(address.nonce[0] ^ 1);
  EXPECT_FALSE(OpenSharedPage(address).has_value());
}

TEST(SharedPage, OtherDescriptorsAreRejected) {
  const OwnPage own = CreateSharedPage();
  EXPECT_FALSE(OpenSharedPage({::getpid(), 0, own.address.nonce}).has_value());
  EXPECT_FALSE(OpenSharedPage({::getpid(), 999999, own.address.nonce}).has_value());
  EXPECT_FALSE(OpenSharedPage({0x7ffffff, own.address.fd, own.address.nonce}).has_value());
  EXPECT_FALSE(OpenSharedPage({::getpid(), own.address.fd, "short"}).has_value());
}

TEST(RankInfo, RoundTripsThroughJson) {
  RankInfo info;
  info.peer = {3, "a"};
  info.host_id = "id";
  info.shares_memory = false;
  info.page = {12, 5, "0123456789abcdef"};
  info.address = "10.0.0.1";
  info.port = 4321;
  const RankInfo back = RankInfo::FromJson(info.ToJson(), 3);
  EXPECT_EQ(back.peer.name(), "rank 3 on host a");
  EXPECT_EQ(back.ToJson(), info.ToJson());
}

TEST(RankInfo, InvalidJsonIsAnErrorNamingTheRank) {
  nlohmann::json json = RankInfo().ToJson();
  json.erase("port");
  try {
    RankInfo::FromJson(json, 2);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_NE(error.message().find("rank 2"), std::string::npos);
  }
}

}  // namespace
}  // namespace hearth::collective
