#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/collective/group.h"
#include "hearth/collective/testing/device_testing.h"
#include "hearth/collective/testing/failure_testing.h"

namespace hearth::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRejectedByNccl = 3;

// Collects the log lines about GPU memory.
class DeviceLog {
 public:
  DeviceLog() {
    log::SetSink([this](const log::Record& record) {
      const std::lock_guard lock(mutex_);
      if (record.text.find("exchange GPU memory") != std::string_view::npos) {
        texts_.emplace_back(record.text);
      }
    });
  }
  ~DeviceLog() { log::SetSink({}); }
  DeviceLog(const DeviceLog&) = delete;
  DeviceLog& operator=(const DeviceLog&) = delete;

  std::vector<std::string> texts() {
    const std::lock_guard lock(mutex_);
    return texts_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

bool Open(Group& group, int device) { return group.OpenDevice(device, Deadline::After(kLong)); }

// The groups continue without GPUs.
void ExpectNoDevices(const std::function<int(int)>& device_of) {
  RunBeforeDevices(Layout::kHosts, 2, [&](Group& group) {
    EXPECT_FALSE(Open(group, device_of(group.rank())));
    float value = 1;
    group.AllReduce(&value, 1, DataType::kFloat32, Op::kSum, Deadline::After(kLong));
    EXPECT_EQ(value, 2);
    const DeviceArray<float> data(std::vector<float>(100));
    const Request sum = {.operation = Operation::kAllReduce,
                         .output = data.get(),
                         .count = data.size(),
                         .memory = Memory::kDevice};
    const Outcome outcome = OutcomeOf([&] { group.Run(sum, Deadline::After(kLong)); });
    EXPECT_EQ(outcome.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(outcome.message, HasSubstr("has not opened the ranks' GPUs"));
    group.Barrier(Deadline::After(kLong));
  });
}

TEST(OpenDevice, LogsTheNcclVersion) {
  DeviceLog log;
  RunOnDevices(Layout::kHosts, 2, [](Group&) {});
  EXPECT_THAT(log.texts(), ElementsAre("2 ranks exchange GPU memory by NCCL 2.29.0"));
}

TEST(OpenDevice, LogsTheRankWithoutAGpu) {
  DeviceLog log;
  ExpectNoDevices([](int rank) { return rank == 0 ? 0 : -1; });
  EXPECT_THAT(log.texts(), ElementsAre("2 ranks exchange GPU memory through "
                                       "host memory (rank 1 on host host1 has no GPU)"));
}

TEST(OpenDevice, LogsNothingIfNoRankHasAGpu) {
  DeviceLog log;
  ExpectNoDevices([](int) { return -1; });
  EXPECT_THAT(log.texts(), ElementsAre());
}

TEST(OpenDevice, RejectsTwoRanksOnOneGpu) {
  DeviceLog log;
  ExpectNoDevices([](int) { return 3; });
  EXPECT_THAT(log.texts(), ElementsAre(HasSubstr("rank 0 on host host0 and rank 1 on host host1 "
                                                 "have the same GPU")));
}

TEST(OpenDevice, FailsOnAllRanksIfOneCannotConnect) {
  DeviceLog log;
  StandIn::Get().refuse(1, kRejectedByNccl);
  RunBeforeDevices(Layout::kOneHost, 2, [](Group& group) {
    // Rank 0 waits for rank 1, which cannot connect, only for a limited time.
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(group.OpenDevice(group.rank(), Deadline::After(2)));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::duration<double>(kLong / 2));
    group.Barrier(Deadline::After(kLong));
  });
  StandIn::Get().heal();
  EXPECT_THAT(log.texts(), ElementsAre(HasSubstr("host memory (rank ")));
}

// Log lines of two ranks that run with the environment variable set.
std::vector<std::string> LogWith(Layout layout, const char* variable, const char* value) {
  ::setenv(variable, value, 1);
  DeviceLog log;
  RunBeforeDevices(layout, 2, [](Group& group) { EXPECT_FALSE(Open(group, group.rank())); });
  ::unsetenv(variable);
  return log.texts();
}

TEST(OpenDevice, RespectsTheRequiredTransport) {
  const std::string variable = "HEARTH_TRANSPORT";
  EXPECT_THAT(LogWith(Layout::kHosts, variable.c_str(), "tcp"),
              ElementsAre(HasSubstr("TCP is required")));
  EXPECT_THAT(LogWith(Layout::kOneHost, variable.c_str(), "tcp"),
              ElementsAre(HasSubstr("TCP is required")));
  EXPECT_THAT(LogWith(Layout::kOneHost, variable.c_str(), "shm"),
              ElementsAre(HasSubstr("shm is required")));
}

TEST(OpenDevice, RespectsEncryption) {
  EXPECT_THAT(LogWith(Layout::kHosts, "HEARTH_TLS", "on"),
              ElementsAre(HasSubstr("TLS is required")));
}

}  // namespace
}  // namespace hearth::collective
