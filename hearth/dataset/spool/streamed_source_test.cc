#include "hearth/dataset/spool/streamed_source.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/dataset/spool/minibatch.h"
#include "hearth/dataset/spool/round_robin_sources.h"
#include "hearth/dataset/spool/testing/source_testing.h"
#include "hearth/ring/ring_writer.h"
#include "hearth/ring/testing/ring_testing.h"

namespace hearth::dataset {
namespace {

using ring::CreateRing;
using ring::RingEnds;
using ring::RingWriter;
using ring::WriteNumbers;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A feeder that sends rows 0, 1, 2, ... in batches of these sizes, in epoch after epoch, from the
// request on until the reader closes the ring.
class StreamedSourceTest : public ::testing::Test {
 protected:
  ~StreamedSourceTest() override { End(); }

  StreamedSource& Open(const std::vector<int>& batch_sizes, StreamedOptions options = {}) {
    End();
    RingEnds ends = CreateRing(64 << 10);
    writer_ = std::make_unique<RingWriter>(std::move(ends.writer));
    source_ = std::make_unique<StreamedSource>(std::move(ends.reader), options,
                                               [this, batch_sizes](int64_t epoch) {
                                                 asked_.push_back(epoch);
                                                 feeder_ = std::thread([this, batch_sizes] {
                                                   while (SendEpoch(batch_sizes)) {
                                                   }
                                                 });
                                               });
    return *source_;
  }

  bool SendEpoch(const std::vector<int>& batch_sizes) {
    int32_t next = 0;
    for (const int size : batch_sizes) {
      if (!WriteNumbers(*writer_, next, size)) return false;
      next += size;
    }
    return writer_->WriteFlush(Soon());
  }

  void End() {
    source_.reset();
    if (feeder_.joinable()) feeder_.join();
  }

  std::unique_ptr<RingWriter> writer_;
  std::vector<int64_t> asked_;
  std::thread feeder_;
  std::unique_ptr<StreamedSource> source_;
};

TEST_F(StreamedSourceTest, EveryEpochHasEachRowOnceInADifferentOrder) {
  StreamedSource& source = Open({30, 0, 70});
  source.BeginAt(0);
  source.BeginAt(5);  // request of another device of the process; ignored
  std::vector<std::vector<int64_t>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    epochs.push_back(TakeEpoch(source, 8));
    EXPECT_EQ(Sorted(epochs.back()), UpTo(100));
    EXPECT_NE(epochs.back(), UpTo(100)) << "the first epoch too: files may be sorted by label";
    source.NextEpoch();
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_THAT(asked_, ElementsAre(0));

  StreamedSource& again = Open({30, 0, 70});
  again.BeginAt(0);
  EXPECT_EQ(TakeEpoch(again, 5), epochs[0]) << "for any minibatch size";
  StreamedSource& other = Open({30, 0, 70}, {.seed = 1});
  other.BeginAt(0);
  EXPECT_NE(TakeEpoch(other, 5), epochs[0]);
}

TEST_F(StreamedSourceTest, LaterEpochStartsWithoutEarlierRows) {
  StreamedSource& whole = Open({40});
  whole.BeginAt(0);
  std::vector<int64_t> third;
  for (int epoch = 0; epoch < 3; ++epoch, whole.NextEpoch()) third = TakeEpoch(whole, 7);

  StreamedSource& resumed = Open({40});
  resumed.BeginAt(2);
  EXPECT_THAT(TakeEpoch(resumed, 7), IsEmpty());
  resumed.NextEpoch();
  EXPECT_THAT(TakeEpoch(resumed, 7), IsEmpty());
  resumed.NextEpoch();
  EXPECT_EQ(TakeEpoch(resumed, 7), third);
}

TEST_F(StreamedSourceTest, RowsAreShuffledWithinWindows) {
  StreamedSource& source = Open({10, 10, 10, 10, 10}, {.window_rows = 20});
  source.BeginAt(0);
  const auto rows = TakeEpoch(source, 7);
  ASSERT_EQ(rows.size(), 50u);
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(rows[i] / 20, static_cast<int64_t>(i) / 20);
  EXPECT_NE(std::vector(rows.begin(), rows.begin() + 20), UpTo(20));

  StreamedSource& by_bytes = Open({10, 10, 10}, {.window_bytes = 1});
  by_bytes.BeginAt(0);
  const auto few = TakeEpoch(by_bytes, 7);
  for (size_t i = 0; i < 30; ++i) EXPECT_EQ(few[i] / 10, static_cast<int64_t>(i) / 10);
}

// Number of batches that ring and reader accept before the feeder blocks.
int BatchesTaken(RingWriter& writer) {
  for (int taken = 0;; ++taken) {
    try {
      WriteNumbers(writer, 0, 3000, Deadline::After(0.3));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
      return taken;
    }
  }
}

TEST_F(StreamedSourceTest, ReadsAtMostTwoWindowsFromTheRing) {
  RingEnds ends = CreateRing(64 << 10), unread = CreateRing(64 << 10);
  RingWriter writer(std::move(ends.writer)), other(std::move(unread.writer));
  StreamedSource source(std::move(ends.reader), {.window_rows = 1}, [](int64_t) {});
  source.BeginAt(0);
  WriteNumbers(writer, 0, 3000);
  Minibatch minibatch;
  ASSERT_EQ(source.Next(1, &minibatch), 1);  // a row of the consumer's window
  EXPECT_LE(BatchesTaken(writer), BatchesTaken(other) + 1);
}

TEST_F(StreamedSourceTest, DevicesShareAStream) {
  StreamedSource& source = Open({64}, {.window_rows = 32});
  source.BeginAt(0);
  const auto devices =
      RoundRobinSources(std::shared_ptr<MinibatchSource>(&source, [](MinibatchSource*) {}), 2);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<int64_t> rows;
    for (const auto& device : devices) {
      for (const int64_t number : TakeEpoch(*device, 8)) rows.push_back(number);
    }
    EXPECT_EQ(Sorted(rows), UpTo(64));
    for (const auto& device : devices) device->NextEpoch();
  }
}

TEST_F(StreamedSourceTest, EarlyEndOfTheFeederIsAnError) {
  RingEnds ends = CreateRing(64 << 10);
  RingWriter writer(std::move(ends.writer));
  StreamedSource source(std::move(ends.reader), {}, [](int64_t) {});
  writer.WriteEnd(Soon());
  source.BeginAt(3);
  for (int epoch = 0; epoch < 3; ++epoch) source.NextEpoch();
  Minibatch minibatch;
  EXPECT_THAT(Thrown([&] { source.Next(4, &minibatch); }).message(), HasSubstr("in epoch 3"));
}

TEST_F(StreamedSourceTest, StopEndsEveryWait) {
  RingEnds ends = CreateRing(64 << 10);
  const RingWriter writer(std::move(ends.writer));
  StreamedSource source(std::move(ends.reader), {}, [](int64_t) {});
  std::thread waiting([&] {
    Minibatch minibatch;
    EXPECT_EQ(CodeOf([&] { source.Next(4, &minibatch); }), ErrorCode::kAborted);
  });
  source.Stop();
  waiting.join();
  source.BeginAt(0);  // no effect after Stop()
}

}  // namespace
}  // namespace hearth::dataset
