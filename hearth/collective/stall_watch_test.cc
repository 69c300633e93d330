// Tests the log lines about waiting operations, over every transport.
#include "hearth/collective/stall_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "hearth/base/log.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/collective/testing/ranks_testing.h"

namespace hearth::collective {
namespace {

using ::testing::HasSubstr;

constexpr double kPatience = 60;

// Collects this process's warnings.
class Warnings {
 public:
  Warnings() {
    log::SetSink([this](const log::Record& record) {
      if (record.level != log::Level::kWarning) return;
      const std::lock_guard lock(mutex_);
      texts_.emplace_back(record.text);
      changed_.notify_all();
    });
  }
  ~Warnings() { log::SetSink({}); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;

  // Waits for `count` matching warnings; returns how many there are. On a busy machine, warnings
  // about other late ranks may come first.
  size_t Await(const std::string& pattern, size_t count) {
    const std::regex wanted(pattern);
    std::unique_lock lock(mutex_);
    size_t found = 0;
    changed_.wait_for(lock, std::chrono::duration<double>(kPatience), [&] {
      found = static_cast<size_t>(
          std::count_if(texts_.begin(), texts_.end(),
                        [&](const std::string& text) { return std::regex_match(text, wanted); }));
      return found >= count;
    });
    return found;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> texts_;
};

// Sets the stall time of groups that connect in its scope.
class StallSetting {
 public:
  explicit StallSetting(const char* seconds) { ::setenv("HEARTH_STALL_SECONDS", seconds, 1); }
  ~StallSetting() { ::unsetenv("HEARTH_STALL_SECONDS"); }
};

Request NamedSum(std::vector<float>& data) {
  Request request = {
      .operation = Operation::kAllReduce, .output = data.data(), .count = data.size()};
  request.name = "conv1";
  return request;
}

std::string HostOf(Wiring wiring, int rank) {
  return wiring == Wiring::kThreads ? "this process" : "host" + std::to_string(rank);
}

class Stalls : public WiringTest {};

// In a ring, and with two ranks per host, most ranks wait for a rank that itself waits for another
// one.
TEST_P(Stalls, EveryWaitingRankLogsTheMissingRankAndTheOperation) {
  const StallSetting setting("0.2");
  const StallCounts before = CountStalls();
  Warnings warnings;
  const std::string waits =
      R"( on host .* has waited for .* s in all-reduce 'conv1' of 4194304 bytes \(float32, sum\): )"
      "rank 2 on host " +
      HostOf(GetParam(), 2) + " has not arrived; it times out in .* s";
  RunGroups(GetParam(), 4, [&](Group& group) {
    std::vector<float> data(1 << 20);
    group.Run(NamedSum(data), Deadline::After(kPatience));
    for (const char* rank : {"rank 0", "rank 1", "rank 3"}) {
      if (group.rank() != 2) continue;
      EXPECT_GE(warnings.Await(rank + waits, 2), 2u) << rank;
    }
    group.Run(NamedSum(data), Deadline::After(kPatience));
    for (const char* rank : {"rank 0", "rank 1", "rank 3"}) {
      if (group.rank() != 2) continue;
      EXPECT_GE(
          warnings.Await(rank + std::string(".* continues: all-reduce 'conv1' .* took .* s"), 1),
          1u)
          << rank;
    }
    group.Barrier(Deadline::After(kPatience));
  });
  EXPECT_GE(CountStalls().reports, before.reports + 6);
  EXPECT_EQ(CountStalls().timeouts, before.timeouts);
}

TEST_P(Stalls, ATimedOutOperationNamesTheRankThatNeverArrived) {
  const StallSetting setting("0.08");
  const StallCounts before = CountStalls();
  Warnings warnings;
  std::mutex mutex;
  std::vector<std::string> errors;
  std::condition_variable ended;
  try {
    RunGroups(GetParam(), 4, [&](Group& group) {
      if (group.rank() == 2) {
        std::unique_lock lock(mutex);
        ended.wait_for(lock, std::chrono::duration<double>(kPatience),
                       [&] { return !errors.empty(); });
        return;
      }
      std::vector<float> data(1 << 20);
      const Error error = Thrown([&] { group.Run(NamedSum(data), Deadline::After(1)); });
      const std::lock_guard lock(mutex);
      if (error.code() == ErrorCode::kDeadlineExceeded) errors.push_back(error.message());
      ended.notify_all();
    });
  } catch (const Error&) {  // ranks report errors about each other, too
  }
  ASSERT_FALSE(errors.empty());
  EXPECT_GT(CountStalls().timeouts, before.timeouts);
  // As in Warnings::Await, ranks may report that another late rank had not arrived.
  EXPECT_THAT(errors,
              ::testing::Contains(::testing::StartsWith(
                  "all-reduce 'conv1' of 4194304 bytes (float32, sum): rank 2 on host " +
                  HostOf(GetParam(), 2) + " had not arrived before the deadline; all ranks must")));
  EXPECT_THAT(errors, ::testing::Each(HasSubstr("rank 2 on host ")));
}

INSTANTIATE_TEST_SUITE_P(Wirings, Stalls,
                         ::testing::Values(Wiring::kThreads, Wiring::kShared, Wiring::kTcp,
                                           Wiring::kUcx, Wiring::kPairs, Wiring::kUcxPairs),
                         [](const auto& info) { return NameOf(info.param); });

TEST(StallReports, ARankThatWaitsForAMessageNamesItsSender) {
  const StallSetting setting("0.1");
  Warnings warnings;
  RunGroups(Wiring::kTcp, 2, [&](Group& group) {
    float value = 0;
    Request request = {.output = &value, .count = 1};
    request.operation = group.rank() == 0 ? Operation::kReceive : Operation::kSend;
    request.input = group.rank() == 0 ? nullptr : &value;
    request.peer = 1 - group.rank();
    if (group.rank() == 1) {
      EXPECT_GE(warnings.Await(".* s in receive of 4 bytes \\(float32, from rank 1\\): rank 1 "
                               "on host host1 has not taken part.*",
                               1),
                1u);
    }
    group.Run(request, Deadline::After(kPatience));
  });
}

TEST(StallReports, ASplitGroupNamesItsOwnRanks) {
  const StallSetting setting("0.1");
  Warnings warnings;
  RunGroups(Wiring::kTcp, 4, [&](Group& group) {
    const auto half = group.Split(group.rank() % 2, Deadline::After(kPatience));
    if (group.rank() == 3) {
      EXPECT_GE(warnings.Await(".* s in barrier: rank 1 on host host3 has not arrived.*", 1), 1u);
    }
    half->Barrier(Deadline::After(kPatience));
    group.Barrier(Deadline::After(kPatience));
  });
}

// Over TCP, the root of a broadcast and ranks that forward its data may finish before others
// arrive.
TEST(StallReports, ARankThatLeftAnOperationEarlyHasReachedIt) {
  const StallSetting setting("0.2");
  Warnings warnings;
  const std::string waits =
      ".* s in broadcast of 4 bytes \\(uint8, from rank 0\\): "
      "rank 2 on host host2 has not arrived.*";
  RunGroups(Wiring::kTcp, 4, [&](Group& group) {
    float value = 0;
    if (group.rank() == 2) {
      EXPECT_GE(warnings.Await(waits, 1), 1u);
    }
    group.Broadcast(&value, sizeof(value), 0, Deadline::After(kPatience));
    warnings.Await(waits, 1);  // ranks that have finished wait here, in no operation
    group.Barrier(Deadline::After(kPatience));
  });
}

TEST(StallReports, NothingIsLoggedIfTheSettingIsZero) {
  const StallSetting setting("0");
  Warnings warnings;
  RunGroups(Wiring::kThreads, 2, [&](Group& group) {
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    group.Barrier(Deadline::After(kPatience));
  });
  EXPECT_EQ(warnings.Await(".*", 0), 0u);
}

TEST(StallReports, AnInvalidSettingIsRejected) {
  for (const char* text : {"soon", "-1", "1s", "nan", "inf"}) {
    const StallSetting setting(text);
    const Error error = Thrown([] { StallSeconds(30); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("HEARTH_STALL_SECONDS=" + std::string(text)));
  }
  const StallSetting setting("");
  EXPECT_EQ(StallSeconds(30), 30);
}

}  // namespace
}  // namespace hearth::collective
