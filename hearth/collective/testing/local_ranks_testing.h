// Runs ranks that share memory as threads of this process, without a group.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "hearth/base/thread.h"
#include "hearth/collective/shared/local_ranks.h"

namespace hearth::collective {

// Runs `body` for each of `count` ranks in a separate thread.
template <typename Body>
void RunLocal(int count, const Body& body) {
  std::vector<OwnPage> pages;
  for (int i = 0; i < count; ++i) pages.push_back(CreateSharedPage());
  std::vector<Thread> threads;
  for (int self = 0; self < count; ++self) {
    threads.emplace_back("rank", [&, self] {
      std::vector<LocalRanks::Member> members;
      for (int i = 0; i < count; ++i) {
        const PageAddress& address = pages[static_cast<size_t>(i)].address;
        members.push_back({{i, "here"}, address.pid, std::move(*OpenSharedPage(address))});
      }
      LocalRanks ranks(std::move(members), self, std::make_shared<AbortSignal>());
      body(ranks);
    });
  }
  for (Thread& thread : threads) thread.Join();
}

}  // namespace hearth::collective
