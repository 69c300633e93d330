#include "hearth/dataset/spool/round_robin_sources.h"

#include <gmock/gmock.h>

#include <thread>

#include "hearth/batch/batch_builder.h"
#include "hearth/batch/batch_view.h"
#include "hearth/dataset/spool/memory_source.h"
#include "hearth/dataset/spool/minibatch.h"
#include "hearth/dataset/spool/testing/source_testing.h"

namespace hearth::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::shared_ptr<MinibatchSource> SourceOfNumbers(int32_t count) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  return std::make_shared<MemorySource>(std::vector<std::shared_ptr<const batch::BatchView>>{
      batch::BatchBuilder().AddInt32("n", values).Build()});
}

TEST(RoundRobinSources, DeviceGetsItsMinibatchesInAnyOrderOfCalls) {
  const auto sources = RoundRobinSources(SourceOfNumbers(10), 2);
  Minibatch minibatch;
  sources[1]->Next(2, &minibatch);
  EXPECT_THAT(NumbersIn(minibatch), ElementsAre(2, 3));
  sources[1]->Next(2, &minibatch);
  EXPECT_THAT(NumbersIn(minibatch), ElementsAre(6, 7));
  EXPECT_EQ(sources[1]->Next(2, &minibatch), 0) << "8 and 9 belong to the other device";
  EXPECT_THAT(TakeEpoch(*sources[0], 2), ElementsAre(0, 1, 4, 5, 8, 9));
}

// Counts the calls to the wrapped source.
class CountingSource : public MinibatchSource {
 public:
  explicit CountingSource(std::shared_ptr<MinibatchSource> inner) : inner_(std::move(inner)) {}
  int64_t Next(int64_t max_rows, Minibatch* out) override {
    ++calls;
    return inner_->Next(max_rows, out);
  }
  void NextEpoch() override { inner_->NextEpoch(); }
  int64_t epoch() const override { return inner_->epoch(); }

  int calls = 0;

 private:
  std::shared_ptr<MinibatchSource> inner_;
};

TEST(RoundRobinSources, TakesNoMoreRowsThanTheDevicesNeed) {
  const auto counting = std::make_shared<CountingSource>(SourceOfNumbers(100));
  const auto sources = RoundRobinSources(counting, 3);
  Minibatch minibatch;
  EXPECT_EQ(counting->calls, 0);
  sources[1]->Next(2, &minibatch);
  EXPECT_EQ(counting->calls, 2) << "one for each device";
  sources[0]->Next(2, &minibatch);
  EXPECT_EQ(counting->calls, 2) << "already distributed";
  sources[0]->Next(2, &minibatch);
  EXPECT_EQ(counting->calls, 4);
}

TEST(RoundRobinSources, FasterDeviceDoesNotEndTheOthersEpoch) {
  const auto sources = RoundRobinSources(SourceOfNumbers(4), 2);
  TakeEpoch(*sources[0], 2);
  TakeEpoch(*sources[1], 2);
  sources[0]->NextEpoch();
  EXPECT_THAT(TakeEpoch(*sources[0], 2), ElementsAre(0, 1));
  Minibatch minibatch;
  EXPECT_EQ(sources[1]->Next(2, &minibatch), 0) << "its previous epoch has ended";
  sources[1]->NextEpoch();
  EXPECT_EQ(sources[1]->epoch(), 1);
  EXPECT_THAT(TakeEpoch(*sources[1], 2), ElementsAre(2, 3));
}

TEST(RoundRobinSources, EveryEpochStartsWithTheFirstDevice) {
  const auto sources = RoundRobinSources(SourceOfNumbers(6), 2);
  for (int epoch = 0; epoch < 3; ++epoch) {
    EXPECT_THAT(TakeEpoch(*sources[0], 2), ElementsAre(0, 1, 4, 5));
    EXPECT_THAT(TakeEpoch(*sources[1], 2), ElementsAre(2, 3));
    for (const auto& source : sources) source->NextEpoch();
  }
}

TEST(RoundRobinSources, SomeDevicesGetNoRowsIfThereAreTooFew) {
  const auto sources = RoundRobinSources(SourceOfNumbers(2), 3);
  EXPECT_THAT(TakeEpoch(*sources[2], 1), IsEmpty());
  EXPECT_THAT(TakeEpoch(*sources[0], 1), ElementsAre(0));
  EXPECT_THAT(TakeEpoch(*sources[1], 1), ElementsAre(1));
}

TEST(RoundRobinSources, ConcurrentThreadsGetTheSameAsSequentialCalls) {
  constexpr int kDevices = 4;
  const auto sources = RoundRobinSources(SourceOfNumbers(1001), kDevices);
  std::vector<std::vector<int64_t>> taken(kDevices);
  std::vector<std::thread> threads;
  for (int d = 0; d < kDevices; ++d) {
    threads.emplace_back([&, d] { taken[d] = TakeEpoch(*sources[d], 7); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int d = 0; d < kDevices; ++d) {
    std::vector<int64_t> expected;
    for (int64_t n = 0; n < 1001; ++n) {
      if (n / 7 % kDevices == d) expected.push_back(n);
    }
    EXPECT_EQ(taken[d], expected) << d;
  }
}

}  // namespace
}  // namespace hearth::dataset
