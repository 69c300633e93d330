#include "hearth/collective/transport/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "hearth/base/testing/error_testing.h"

namespace hearth::collective {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<HostAddress> kHost = {
    {"lo", "127.0.0.1"},   {"eth0", "192.168.4.7"},      {"ib0", "10.20.31.7"},     {"lo", "::1"},
    {"eth0", "fd00:4::7"}, {"ib0", "fd00:20:0:8000::7"}, {"ib0:1", "10.20.128.200"}};

std::string Chosen(const std::string& choice, const std::string& usual = "192.168.4.7") {
  return ChooseAddress(choice, usual, kHost);
}

TEST(ListenAddress, IsTheAddressOfTheNamedInterface) {
  EXPECT_EQ(Chosen("ib0"), "10.20.31.7");
  EXPECT_EQ(Chosen("lo"), "127.0.0.1");
}

TEST(ListenAddress, PrefersTheIpVersionInUse) {
  EXPECT_EQ(Chosen("ib0", "fd00:4::7"), "fd00:20:0:8000::7");
  EXPECT_EQ(Chosen("ib0:1", "fd00:4::7"), "10.20.128.200");  // ib0:1 has no IPv6 address
}

TEST(ListenAddress, IsInTheNamedRange) {
  EXPECT_EQ(Chosen("10.20.0.0/16"), "10.20.31.7");
  EXPECT_EQ(Chosen("10.20.128.0/17"), "10.20.128.200");
  EXPECT_EQ(Chosen("10.20.128.192/26"), "10.20.128.200");
  EXPECT_EQ(Chosen("0.0.0.0/0"), "127.0.0.1");
  EXPECT_EQ(Chosen("fd00:20::/32"), "fd00:20:0:8000::7");
  EXPECT_EQ(Chosen("fd00:20:0:8000::/49"), "fd00:20:0:8000::7");
  EXPECT_EQ(Chosen("fd00:4::7/128"), "fd00:4::7");
}

TEST(ListenAddress, AnUnmatchedChoiceIsRejectedWithTheKnownAddresses) {
  for (const char* choice : {"ib1", "10.21.0.0/16", "10.20.128.0/25", "fd00:20:0:0::/49"}) {
    const Error error = Thrown([&] { Chosen(choice); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << choice;
    EXPECT_THAT(error.message(), AllOf(HasSubstr(choice), HasSubstr("10.20.31.7 (ib0)")));
  }
}

TEST(ListenAddress, AnInvalidRangeIsRejected) {
  for (const char* choice : {"10.20.0.0/", "10.20.0.0/33", "10.20.0.0/1x", "10.20/16", "ib0/16",
                             "fd00::/129", "/", "10.20.0.0/-1", "10.20.0.0/99999999999999999999"}) {
    EXPECT_THAT(Thrown([&] { Chosen(choice); }).message(), HasSubstr("not an address range"))
        << choice;
  }
}

TEST(ListenAddress, IsTheDefaultUnlessTheEnvironmentChooses) {
  EXPECT_EQ(ListenAddress("192.168.4.7"), "192.168.4.7");
  setenv("HEARTH_INTERFACE", "", 1);
  EXPECT_EQ(ListenAddress("192.168.4.7"), "192.168.4.7");
  setenv("HEARTH_INTERFACE", "127.0.0.0/8", 1);
  EXPECT_EQ(ListenAddress("192.168.4.7"), "127.0.0.1");
  setenv("HEARTH_INTERFACE", "lo", 1);
  EXPECT_EQ(ListenAddress("192.168.4.7"), "127.0.0.1");
  unsetenv("HEARTH_INTERFACE");
}

}  // namespace
}  // namespace hearth::collective
