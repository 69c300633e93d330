#include "hearth/caffe/data/prefetcher.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::caffe {
namespace {

using testing::ThrowsMessage;

class Filling : public BatchSource {
 public:
  explicit Filling(std::function<bool(DataBatch*)> fill, std::function<void()> next_epoch = nullptr)
      : fill_(std::move(fill)), next_epoch_(std::move(next_epoch)) {}
  bool Fill(DataBatch* batch) override { return fill_(batch); }
  void NextEpoch() override { next_epoch_(); }

 private:
  std::function<bool(DataBatch*)> fill_;
  std::function<void()> next_epoch_;
};

template <typename... Functions>
std::unique_ptr<BatchSource> From(Functions... functions) {
  return std::make_unique<Filling>(functions...);
}

void SetNumber(DataBatch* batch, int number) {
  batch->tops.resize(1);
  batch->tops[0].Reshape({1});
  batch->tops[0].values[0] = static_cast<float>(number);
}

// Batches of one number: 0, 1, 2, ...
std::unique_ptr<BatchSource> Counting(std::atomic<int>* filled) {
  return From([filled](DataBatch* batch) {
    SetNumber(batch, (*filled)++);
    return true;
  });
}

float NumberOf(const DataBatch& batch) { return batch.tops[0].values[0]; }

TEST(Prefetcher, DeliversBatchesInOrderAndPrefetchesALimitedNumber) {
  std::atomic<int> filled{0};
  Prefetcher prefetcher(3, Counting(&filled));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(NumberOf(prefetcher.Next()), static_cast<float>(i));
    EXPECT_LE(filled.load(), i + 1 + 4);
  }
}

TEST(Prefetcher, WorksWhileABatchIsUsed) {
  std::promise<void> second;
  std::atomic<int> count{0};
  Prefetcher prefetcher(1, From([&](DataBatch*) {
                          if (++count == 2) second.set_value();
                          return true;
                        }));
  prefetcher.Next();
  EXPECT_EQ(second.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

TEST(Prefetcher, DeliversBatchesBeforeAFailureThenThrowsItAlways) {
  int count = 0;
  Prefetcher prefetcher(2, From([&](DataBatch*) {
                          if (++count == 3) Throw(ErrorCode::kDataLoss, "the third");
                          return true;
                        }));
  prefetcher.Next();
  prefetcher.Next();
  EXPECT_THAT([&] { prefetcher.Next(); }, ThrowsMessage<Error>("the third"));
  EXPECT_THAT([&] { prefetcher.Next(); }, ThrowsMessage<Error>("the third"));
  EXPECT_THAT([&] { prefetcher.NextEpoch(); }, ThrowsMessage<Error>("the third"));
}

TEST(Prefetcher, StopsOnDestruction) {
  std::atomic<int> filled{0};
  Prefetcher prefetcher(2, Counting(&filled));
}

// Each epoch e has four numbers, starting at 10 * e.
TEST(Prefetcher, BeginsEveryRequestedEpochWhateverIsReady) {
  int epoch = 0, next = 0;
  Prefetcher prefetcher(3, From(
                               [&](DataBatch* batch) {
                                 if (next == 4) return false;
                                 SetNumber(batch, 10 * epoch + next++);
                                 return true;
                               },
                               [&] {
                                 ++epoch;
                                 next = 0;
                               }));
  EXPECT_EQ(NumberOf(prefetcher.Next()), 0);
  EXPECT_EQ(NumberOf(prefetcher.Next()), 1);
  prefetcher.NextEpoch();
  EXPECT_EQ(NumberOf(prefetcher.Next()), 10);
  prefetcher.NextEpoch();
  prefetcher.NextEpoch();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(NumberOf(prefetcher.Next()), 30 + i);
}

TEST(Prefetcher, DeliversInvalidRowsOfTheEndOfAnEpochOnce) {
  Prefetcher prefetcher(2, From(
                               [&](DataBatch* batch) {
                                 batch->invalid_rows.push_back({"7", "is bad"});
                                 return false;
                               },
                               [] {}));
  for (int epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(prefetcher.Next().invalid_rows.size(), 1u);
    EXPECT_EQ(prefetcher.Next().invalid_rows.size(), 0u);
    prefetcher.NextEpoch();
  }
}

TEST(Prefetcher, ThrowsAFailureToBeginAnEpoch) {
  Prefetcher prefetcher(1, From([](DataBatch*) { return true; },
                                [] { Throw(ErrorCode::kUnavailable, "no more epochs"); }));
  prefetcher.NextEpoch();
  EXPECT_THAT([&] { prefetcher.Next(); }, ThrowsMessage<Error>("no more epochs"));
}

}  // namespace
}  // namespace hearth::caffe
