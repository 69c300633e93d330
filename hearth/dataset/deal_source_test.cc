#include "hearth/dataset/deal_source.h"

#include <gmock/gmock.h>

#include <thread>

#include "hearth/batch/batch_builder.h"
#include "hearth/batch/batch_view.h"
#include "hearth/dataset/memory_source.h"
#include "hearth/dataset/minibatch.h"
#include "hearth/dataset/testing/source_testing.h"

namespace hearth::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::shared_ptr<MinibatchSource> Numbers(int32_t count) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  return std::make_shared<MemorySource>(std::vector<std::shared_ptr<const batch::BatchView>>{
      batch::BatchBuilder().AddInt32("n", values).Build()});
}

TEST(DealSource, DeviceGetsItsMinibatchesWhoeverAsksFirst) {
  const auto sources = DealSource(Numbers(10), 2);
  Minibatch minibatch;
  sources[1]->Next(2, &minibatch);
  EXPECT_THAT(NumbersIn(minibatch), ElementsAre(2, 3));
  sources[1]->Next(2, &minibatch);
  EXPECT_THAT(NumbersIn(minibatch), ElementsAre(6, 7));
  EXPECT_EQ(sources[1]->Next(2, &minibatch), 0) << "8 and 9 are the other one's";
  EXPECT_THAT(TakeEpoch(*sources[0], 2), ElementsAre(0, 1, 4, 5, 8, 9));
}

// Counts what is asked of the source behind it.
class CountingSource : public MinibatchSource {
 public:
  explicit CountingSource(std::shared_ptr<MinibatchSource> inner) : inner_(std::move(inner)) {}
  int64_t Next(int64_t max_rows, Minibatch* out) override {
    ++asked;
    return inner_->Next(max_rows, out);
  }
  void NextEpoch() override { inner_->NextEpoch(); }
  int64_t epoch() const override { return inner_->epoch(); }

  int asked = 0;

 private:
  std::shared_ptr<MinibatchSource> inner_;
};

TEST(DealSource, TakesNoMoreRowsThanTheDevicesNeed) {
  const auto counting = std::make_shared<CountingSource>(Numbers(100));
  const auto sources = DealSource(counting, 3);
  Minibatch minibatch;
  EXPECT_EQ(counting->asked, 0);
  sources[1]->Next(2, &minibatch);
  EXPECT_EQ(counting->asked, 2) << "its own and the one before it";
  sources[0]->Next(2, &minibatch);
  EXPECT_EQ(counting->asked, 2) << "dealt already";
  sources[0]->Next(2, &minibatch);
  EXPECT_EQ(counting->asked, 4);
}

TEST(DealSource, DeviceThatIsAheadDoesNotLoseTheOthersEpoch) {
  const auto sources = DealSource(Numbers(4), 2);
  TakeEpoch(*sources[0], 2);
  TakeEpoch(*sources[1], 2);
  sources[0]->NextEpoch();
  EXPECT_THAT(TakeEpoch(*sources[0], 2), ElementsAre(0, 1));
  Minibatch minibatch;
  EXPECT_EQ(sources[1]->Next(2, &minibatch), 0) << "its old epoch is still over";
  sources[1]->NextEpoch();
  EXPECT_EQ(sources[1]->epoch(), 1);
  EXPECT_THAT(TakeEpoch(*sources[1], 2), ElementsAre(2, 3));
}

TEST(DealSource, EveryEpochStartsWithTheFirstDevice) {
  const auto sources = DealSource(Numbers(6), 2);
  for (int epoch = 0; epoch < 3; ++epoch) {
    EXPECT_THAT(TakeEpoch(*sources[0], 2), ElementsAre(0, 1, 4, 5));
    EXPECT_THAT(TakeEpoch(*sources[1], 2), ElementsAre(2, 3));
    for (const auto& source : sources) source->NextEpoch();
  }
}

TEST(DealSource, MoreDevicesThanRowsLeaveSomeWithoutAny) {
  const auto sources = DealSource(Numbers(2), 3);
  EXPECT_THAT(TakeEpoch(*sources[2], 1), IsEmpty());
  EXPECT_THAT(TakeEpoch(*sources[0], 1), ElementsAre(0));
  EXPECT_THAT(TakeEpoch(*sources[1], 1), ElementsAre(1));
}

TEST(DealSource, ThreadsInLockStepGetTheSameAsOneAfterTheOther) {
  constexpr int kDevices = 4;
  const auto sources = DealSource(Numbers(1001), kDevices);
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
