// Conformance suite of MinibatchSource: the contract of minibatch.h, for every implementation.
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/batch/batch_view.h"
#include "hearth/dataset/spool/memory_source.h"
#include "hearth/dataset/spool/minibatch.h"
#include "hearth/dataset/spool/ring_source.h"
#include "hearth/dataset/spool/round_robin_sources.h"
#include "hearth/dataset/spool/slice_source.h"
#include "hearth/dataset/spool/spool_source.h"
#include "hearth/dataset/spool/streamed_source.h"
#include "hearth/dataset/spool/testing/source_testing.h"
#include "hearth/ring/ring_writer.h"
#include "hearth/ring/testing/ring_testing.h"

namespace hearth::dataset {
namespace {

using Source = std::shared_ptr<MinibatchSource>;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Implementation {
  std::string name;
  // Creates a source of the ring's rows whose waits end after `timeout_s`.
  std::function<Source(ring::RingEnd ring, double timeout_s)> open;
  // True if the feeder sends every epoch; otherwise it sends one epoch, then the end of the stream.
  bool fed_each_epoch = false;
};

std::shared_ptr<Spool> SpoolFrom(ring::RingEnd ring, double timeout_s) {
  return std::make_shared<Spool>(std::move(ring), SpoolOptions{::testing::TempDir(), timeout_s});
}

Source OpenMemory(ring::RingEnd ring, double timeout_s) {
  ring::RingReader reader(std::move(ring));
  std::vector<std::shared_ptr<const batch::BatchView>> batches;
  for (;;) {
    const ring::RingEntry entry = reader.Next(Deadline::After(timeout_s));
    if (entry.kind == ring::EntryKind::kEnd) return std::make_shared<MemorySource>(batches);
    if (entry.kind == ring::EntryKind::kBatch) batches.push_back(batch::CopyBatch(entry.image));
  }
}

Source OpenRing(ring::RingEnd ring, double timeout_s) {
  return std::make_shared<RingSource>(std::move(ring), timeout_s);
}

Source OpenRoundRobin(ring::RingEnd ring, double timeout_s) {
  const Source source = std::make_shared<SpoolSource>(SpoolFrom(std::move(ring), timeout_s),
                                                      ReplayOptions{.shuffle = false});
  return RoundRobinSources(source, 1).front();
}

Source OpenSlice(ring::RingEnd ring, double timeout_s) {
  auto source = std::make_shared<SliceSource>(SpoolFrom(std::move(ring), timeout_s));
  source->SetRange(0, source->rows());
  return source;
}

Source OpenSpool(ring::RingEnd ring, double timeout_s) {
  return std::make_shared<SpoolSource>(SpoolFrom(std::move(ring), timeout_s), ReplayOptions{});
}

Source OpenStreamed(ring::RingEnd ring, double timeout_s) {
  const StreamedOptions options = {.window_rows = 16, .timeout_s = timeout_s};
  auto source = std::make_shared<StreamedSource>(std::move(ring), options, [](int64_t) {});
  source->BeginAt(0);
  return source;
}

// A feeder that sends rows 0, 1, 2, ... in batches of these sizes, then a flush mark. With
// `each_epoch`, it repeats this until the reader closes the ring; otherwise it ends the stream
// after the first time.
class Feeder {
 public:
  Feeder(ring::RingEnd ring, std::vector<int> batch_sizes, bool each_epoch)
      : writer_(std::move(ring)), batch_sizes_(std::move(batch_sizes)) {
    thread_ = std::thread([this, each_epoch] { Send(each_epoch); });
  }
  ~Feeder() { thread_.join(); }

 private:
  void Send(bool each_epoch) {
    try {
      while (SendEpoch() && each_epoch) {
      }
      if (!each_epoch) writer_.WriteEnd(Soon());
    } catch (const Error& error) {  // the reader was destroyed
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable) << error.message();
    }
  }

  bool SendEpoch() {
    int32_t next = 0;
    for (const int size : batch_sizes_) {
      if (!ring::WriteNumbers(writer_, next, size)) return false;
      next += size;
    }
    return writer_.WriteFlush(Soon());
  }

  ring::RingWriter writer_;
  const std::vector<int> batch_sizes_;
  std::thread thread_;
};

class MinibatchSourceTest : public ::testing::TestWithParam<Implementation> {
 protected:
  MinibatchSource& Open(const std::vector<int>& batch_sizes) {
    Close();
    ring::RingEnds ends = ring::CreateRing(64 << 10);
    feeder_ =
        std::make_unique<Feeder>(std::move(ends.writer), batch_sizes, GetParam().fed_each_epoch);
    source_ = GetParam().open(std::move(ends.reader), 60);
    return *source_;
  }

  void Close() {
    source_.reset();  // closes the ring, so that the feeder ends
    feeder_.reset();
  }

  std::unique_ptr<Feeder> feeder_;
  Source source_;  // destroyed before its feeder
};

TEST_P(MinibatchSourceTest, DeliversEveryRowOncePerEpoch) {
  for (const std::vector<int>& sizes :
       std::vector<std::vector<int>>{{1}, {0, 7, 0}, {30, 0, 70}, {300, 1}}) {
    int rows = 0;
    for (const int size : sizes) rows += size;
    for (const int64_t max_rows : {1, 8, 1000}) {
      MinibatchSource& source = Open(sizes);
      for (int epoch = 0; epoch < 3; ++epoch, source.NextEpoch()) {
        EXPECT_EQ(source.epoch(), epoch);
        EXPECT_EQ(Sorted(TakeEpoch(source, max_rows)), UpTo(rows)) << max_rows << " " << epoch;
      }
    }
  }
}

TEST_P(MinibatchSourceTest, MinibatchesAreFullUpToTheEndOfTheEpoch) {
  MinibatchSource& source = Open({3, 4, 33});
  Minibatch minibatch;
  for (int epoch = 0; epoch < 2; ++epoch, source.NextEpoch()) {
    std::vector<int64_t> sizes;
    for (int64_t rows = 1; rows > 0 && sizes.size() < 10;) {
      rows = source.Next(12, &minibatch);
      EXPECT_EQ(minibatch.size(), rows) << "replaced, and not appended to";
      sizes.push_back(rows);
    }
    EXPECT_THAT(sizes, ElementsAre(12, 12, 12, 4, 0));
    EXPECT_EQ(source.Next(12, &minibatch), 0) << "an epoch that ended stays ended";
  }
}

TEST_P(MinibatchSourceTest, NextEpochSkipsRowsThatWereNotRead) {
  MinibatchSource& source = Open({40, 40, 20});
  Minibatch minibatch;
  source.Next(5, &minibatch);
  source.NextEpoch();
  source.NextEpoch();  // a whole epoch
  EXPECT_EQ(source.epoch(), 2);
  EXPECT_EQ(Sorted(TakeEpoch(source, 7)), UpTo(100));
}

TEST_P(MinibatchSourceTest, NoRowsMakeEmptyEpochs) {
  for (const std::vector<int>& sizes : std::vector<std::vector<int>>{{}, {0}}) {
    MinibatchSource& source = Open(sizes);
    for (int epoch = 0; epoch < 3; ++epoch, source.NextEpoch()) {
      EXPECT_THAT(TakeEpoch(source, 4), IsEmpty());
    }
  }
}

TEST_P(MinibatchSourceTest, RowsLiveAsLongAsTheirMinibatch) {
  MinibatchSource& source = Open({20, 20});
  Minibatch first, later;
  source.Next(10, &first);
  const std::vector<int64_t> numbers = NumbersIn(first);
  for (int epoch = 0; epoch < 3; ++epoch, source.NextEpoch()) TakeEpoch(source, 7);
  source.Next(10, &later);
  const Minibatch copy = later;
  later.Clear();
  Close();
  EXPECT_EQ(NumbersIn(first), numbers);
  EXPECT_EQ(NumbersIn(copy).size(), 10U);
}

const Implementation kMemory = {"Memory", OpenMemory};
const Implementation kRing = {"Ring", OpenRing, true};
const Implementation kRoundRobin = {"RoundRobin", OpenRoundRobin};
const Implementation kSlice = {"Slice", OpenSlice};
const Implementation kSpool = {"Spool", OpenSpool};
const Implementation kStreamed = {"Streamed", OpenStreamed, true};

std::string NameOfSource(const ::testing::TestParamInfo<Implementation>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(All, MinibatchSourceTest,
                         ::testing::Values(kMemory, kRing, kRoundRobin, kSlice, kSpool, kStreamed),
                         NameOfSource);

// Tests of the implementations that wait for a feeder.
class FedSourceTest : public ::testing::TestWithParam<Implementation> {
 protected:
  FedSourceTest() : FedSourceTest(ring::CreateRing(64 << 10)) {}
  explicit FedSourceTest(ring::RingEnds ends)
      : writer_(std::make_unique<ring::RingWriter>(std::move(ends.writer))),
        reader_(std::move(ends.reader)) {}

  // Returns the error of a source that is asked for more rows than the feeder sends.
  Error ReadError(double timeout_s) {
    return Thrown([&] {
      const Source source = GetParam().open(std::move(reader_), timeout_s);
      Minibatch minibatch;
      source->Next(100, &minibatch);
    });
  }

  std::unique_ptr<ring::RingWriter> writer_;
  ring::RingEnd reader_;
};

TEST_P(FedSourceTest, ThrowsTheErrorOfAFeederThatFailed) {
  ring::WriteNumbers(*writer_, 0, 4);
  writer_->Fail(Error(ErrorCode::kInternal, "the query failed"));
  EXPECT_EQ(ReadError(60).message(), "the query failed");
}

TEST_P(FedSourceTest, ThrowsUnavailableForAFeederThatDied) {
  ring::WriteNumbers(*writer_, 0, 4);
  writer_.reset();
  EXPECT_EQ(ReadError(60).code(), ErrorCode::kUnavailable);
}

TEST_P(FedSourceTest, ThrowsDeadlineExceededForAFeederThatIsSilent) {
  ring::WriteNumbers(*writer_, 0, 4);
  EXPECT_EQ(ReadError(0.05).code(), ErrorCode::kDeadlineExceeded);
}

INSTANTIATE_TEST_SUITE_P(All, FedSourceTest,
                         ::testing::Values(kRing, kRoundRobin, kSlice, kSpool, kStreamed),
                         NameOfSource);

}  // namespace
}  // namespace hearth::dataset
