// Runs a coordinator and its members as threads of this process, for tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "hearth/base/hmac.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/base/thread.h"
#include "hearth/rendezvous/coordinator.h"
#include "hearth/rendezvous/handshake.h"
#include "hearth/rendezvous/member.h"

namespace hearth::rendezvous {

inline CoordinatorOptions TestOptions(int world) {
  CoordinatorOptions options;
  options.world = world;
  options.token = NewToken();
  options.generation = 3;
  return options;
}

inline MemberOptions OptionsOf(const CoordinatorOptions& cluster, int port, int rank) {
  MemberOptions options;
  options.host = "127.0.0.1";
  options.port = port;
  options.token = cluster.token;
  options.generation = cluster.generation;
  options.rank = rank;
  options.world = cluster.world;
  options.host_name = "host" + std::to_string(rank);
  options.connect_timeout_s = 10;
  return options;
}

// Calls `body` for every rank in a separate thread, after the rank has joined and reserved;
// rethrows an error of `body`. Calls Done() for members whose body returns without an exception.
inline void RunMembers(const CoordinatorOptions& cluster, int port,
                       const std::function<void(Member&)>& body) {
  std::vector<Thread> threads;
  for (int rank = 0; rank < cluster.world; ++rank) {
    threads.emplace_back("rank", [&, rank] {
      Member member(OptionsOf(cluster, port, rank));
      member.Reserve({{"rank", rank}});
      body(member);
      member.Done(nullptr);
    });
  }
  for (Thread& thread : threads) thread.Join();
}

}  // namespace hearth::rendezvous
