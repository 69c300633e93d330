// Runs ranks that share memory as threads of this process, without a group.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "hearth/base/thread.h"
#include "hearth/collective/shared_memory/local_ranks.h"

namespace hearth::collective {

// The members of `pages`, mapped for one more rank.
inline std::vector<LocalRanks::Member> MembersOf(const std::vector<OwnPage>& pages) {
  std::vector<LocalRanks::Member> members;
  for (const OwnPage& page : pages) {
    members.push_back({{static_cast<int>(members.size()), "here"},
                       page.address.pid,
                       std::move(*OpenSharedPage(page.address))});
  }
  return members;
}

// Runs `body` for each of `count` ranks in a separate thread.
template <typename Body>
void RunLocal(int count, const Body& body) {
  std::vector<OwnPage> pages;
  for (int i = 0; i < count; ++i) pages.push_back(CreateSharedPage());
  std::vector<Thread> threads;
  for (int self = 0; self < count; ++self) {
    threads.emplace_back("rank", [&, self] {
      LocalRanks ranks(MembersOf(pages), self, std::make_shared<AbortSignal>());
      body(ranks);
    });
  }
  for (Thread& thread : threads) thread.Join();
}

}  // namespace hearth::collective
