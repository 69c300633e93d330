// Runs a coordinator and n ranks as threads of this process, for tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "hearth/collective/group.h"
#include "hearth/rendezvous/member.h"

namespace hearth::collective {

// Runs `body` once per rank with a member that has joined the same cluster; the host of rank r is
// called "host<r>". A rank that throws makes the others fail. Returns when all ranks have ended;
// throws the error of the lowest rank that was not merely aborted.
void RunRanks(int ranks, const std::function<void(rendezvous::Member&)>& body);

// Transports of the ranks of a test.
enum class Wiring {
  kThreads,      // Group::ConnectThreads
  kShared,       // shared memory, negotiated through the rendezvous
  kTcp,          // TCP between all ranks
  kTcp6,         // as kTcp, over IPv6
  kTls,          // as kTcp, with TLS
  kTlsPairs,     // as kPairs, with TLS between hosts
  kUcx,          // UCX between all ranks
  kUcxPairs,     // as kPairs, with UCX between hosts
  kPairs,        // two ranks per host; the last host may have one
  kInterleaved,  // two hosts; even ranks on one, odd ranks on the other
};
std::string NameOf(Wiring wiring);

// Returns why this host does not support the wiring (no UCX, no IPv6), or empty. UCX uses the
// transports in HEARTH_TEST_UCX_TLS, by default "tcp", which needs no RDMA device.
std::string SkipReason(Wiring wiring);

// Options of rank `rank` for any wiring except kThreads. `timeout_s` is GroupOptions::timeout_s.
GroupOptions OptionsOf(Wiring wiring, int rank, double timeout_s = 30);

// A test that is parameterised by wiring.
class WiringTest : public ::testing::TestWithParam<Wiring> {
 protected:
  void SetUp() override {
    if (const std::string reason = SkipReason(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }
};

// Like RunRanks, but passes each rank's group. `timeout_s` is GroupOptions::timeout_s.
void RunGroups(Wiring wiring, int ranks, const std::function<void(Group&)>& body,
               double timeout_s = 30);

}  // namespace hearth::collective
