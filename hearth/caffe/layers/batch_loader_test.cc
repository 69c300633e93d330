#include "hearth/caffe/layers/batch_loader.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <future>
#include <set>

#include "hearth/base/error.h"

namespace hearth::caffe {
namespace {

using testing::ThrowsMessage;

// Batches of one number: 0, 1, 2, ...
BatchLoader::Load Counting(std::atomic<int>* loaded) {
  return [loaded](BatchLoader::Batch* batch) {
    batch->tops.resize(1);
    batch->tops[0].Reshape({1});
    batch->tops[0].values[0] = static_cast<float>((*loaded)++);
  };
}

TEST(BatchLoader, GivesBatchesInOrderAndWorksAheadOnlySoFar) {
  std::atomic<int> loaded{0};
  BatchLoader loader(3, Counting(&loaded));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(loader.Next().tops[0].values[0], static_cast<float>(i));
    EXPECT_LE(loaded.load(), i + 1 + 4);
  }
}

TEST(BatchLoader, WorksWhileABatchIsUsed) {
  std::promise<void> second;
  std::atomic<int> count{0};
  BatchLoader loader(1, [&](BatchLoader::Batch*) {
    if (++count == 2) second.set_value();
  });
  loader.Next();
  EXPECT_EQ(second.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

TEST(BatchLoader, DeliversWhatCameBeforeAFailureThenTheFailureAlways) {
  int count = 0;
  BatchLoader loader(2, [&](BatchLoader::Batch*) {
    if (++count == 3) Throw(ErrorCode::kDataLoss, "the third");
  });
  loader.Next();
  loader.Next();
  EXPECT_THAT([&] { loader.Next(); }, ThrowsMessage<Error>("the third"));
  EXPECT_THAT([&] { loader.Next(); }, ThrowsMessage<Error>("the third"));
}

TEST(BatchLoader, EndsWithoutBeingAsked) {
  std::atomic<int> loaded{0};
  BatchLoader loader(2, Counting(&loaded));
}

TEST(ForEach, VisitsEveryIndexOnceOnAnyNumberOfThreads) {
  for (const int threads : {1, 3, 50}) {
    std::vector<std::atomic<int>> visits(20);
    ForEach(20, threads, [&](int64_t i) { ++visits[i]; });
    for (const auto& count : visits) EXPECT_EQ(count.load(), 1);
  }
  ForEach(0, 4, [](int64_t) { FAIL(); });
}

TEST(ForEach, ThrowsWhatAnyThreadThrew) {
  for (const int threads : {1, 4}) {
    EXPECT_THAT(([&] {
                  ForEach(100, threads, [](int64_t i) {
                    if (i == 60) Throw(ErrorCode::kDataLoss, "item 60");
                  });
                }),
                ThrowsMessage<Error>("item 60"));
  }
}

}  // namespace
}  // namespace hearth::caffe
