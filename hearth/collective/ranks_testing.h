// For tests: a coordinator and n ranks as threads of this process.
#pragma once

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
  kPairs,        // hosts of two ranks, the last host maybe of one
  kInterleaved,  // two hosts; even ranks on one, odd ranks on the other
};
std::string NameOf(Wiring wiring);

// The same with a group per rank. `timeout_s` is that of the groups.
void RunGroups(Wiring wiring, int ranks, const std::function<void(Group&)>& body,
               double timeout_s = 30);

}  // namespace hearth::collective
