// For tests: a coordinator and n ranks as threads of this process.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "hearth/collective/group.h"
#include "hearth/rendezvous/member.h"

namespace hearth::collective {

// Runs `body` once per rank with a member of the same cluster that has reserved; the host of rank r
// is called "host<r>". A rank that throws fails the others. Returns when all ended; throws what the
// first rank in order threw that was not merely told of another's failure.
void RunRanks(int ranks, const std::function<void(rendezvous::Member&)>& body);

// How the ranks of a test are wired.
enum class Wiring {
  kThreads,      // ConnectThreads
  kShared,       // shared memory, found through the rendezvous
  kTcp,          // tcp between all
  kTcp6,         // the same over IPv6
  kTls,          // the same with TLS
  kTlsPairs,     // as kPairs, with TLS between hosts
  kUcx,          // UCX between all
  kUcxPairs,     // as kPairs, with UCX between hosts
  kPairs,        // hosts of two ranks, the last host maybe of one
  kInterleaved,  // two hosts; even ranks on one, odd ranks on the other
};
std::string NameOf(Wiring wiring);

// Why groups cannot be wired so here (no UCX, no IPv6), or empty. UCX goes over what
// HEARTH_TEST_UCX_TLS says, by default "tcp", which needs no RDMA device.
std::string WhyNot(Wiring wiring);

// How rank `rank` connects for any of them but kThreads. `timeout_s` is that of the group.
GroupOptions OptionsOf(Wiring wiring, int rank, double timeout_s = 30);

// A test for each of some wirings.
class WiringTest : public ::testing::TestWithParam<Wiring> {
 protected:
  void SetUp() override {
    if (const std::string reason = WhyNot(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
};

// The same with a group per rank. `timeout_s` is that of the groups.
void RunGroups(Wiring wiring, int ranks, const std::function<void(Group&)>& body,
               double timeout_s = 30);

}  // namespace hearth::collective
