// Runs a coordinator and n ranks as threads of this process, for tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "hearth/collective/group.h"
#include "hearth/rendezvous/member.h"

namespace hearth::collective {

// Runs `body` once per rank with a member of one cluster that has reserved; the host of rank r is
// called "host<r>". A rank that throws fails the others. Returns when all have ended; throws the
// error of the lowest rank that failed on its own.
void RunRanks(int ranks, const std::function<void(rendezvous::Member&)>& body);

// Transports of the ranks of a test.
enum class Wiring {
  kThreads,      // ConnectThreads
  kShared,       // shared memory, negotiated through the rendezvous
  kTcp,          // TCP between all
  kTcp6,         // the same over IPv6
  kTls,          // the same with TLS
  kTlsPairs,     // as kPairs, with TLS between hosts
  kUcx,          // UCX between all
  kUcxPairs,     // as kPairs, with UCX between hosts
  kPairs,        // two ranks per host; the last host may have one
  kInterleaved,  // two hosts; even ranks on one, odd ranks on the other
};
std::string NameOf(Wiring wiring);

// Why groups cannot be connected so here (no UCX, no IPv6), or empty. UCX uses the transports in
// HEARTH_TEST_UCX_TLS, by default "tcp", which needs no RDMA device.
std::string SkipReason(Wiring wiring);

// Options of rank `rank` for any wiring but kThreads. `timeout_s` is that of the group.
GroupOptions OptionsOf(Wiring wiring, int rank, double timeout_s = 30);

// A test that is parameterised by wiring.
class WiringTest : public ::testing::TestWithParam<Wiring> {
 protected:
  void SetUp() override {
    if (const std::string reason = SkipReason(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
};

// The same with a group per rank. `timeout_s` is that of the groups.
void RunGroups(Wiring wiring, int ranks, const std::function<void(Group&)>& body,
               double timeout_s = 30);

}  // namespace hearth::collective
