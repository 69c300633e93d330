#include "hearth/caffe/data/row_batches.h"

#include <gmock/gmock.h>

#include <map>

#include "hearth/base/error.h"
#include "hearth/caffe/data/testing/row_testing.h"

namespace hearth::caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Copies column x, and rejects values for which `is_bad` is true.
RowBatches::ReadRow ReadX(const std::function<bool(int64_t)>& is_bad = nullptr) {
  return [is_bad](const dataset::Minibatch::Row& row, uint64_t, const std::vector<float*>& tops) {
    const int64_t x = row.batch->column("x").AsInt64(row.index);
    Require(!is_bad || !is_bad(x), ErrorCode::kDataLoss, "{} is bad", x);
    tops[0][0] = static_cast<float>(x);
    tops[1][0] = tops[1][1] = static_cast<float>(-x);
  };
}

RowBatches::Options Options(int64_t batch_size, int threads = 1) {
  return {.batch_size = batch_size, .row_sizes = {1, 2}, .threads = threads, .seed = 3};
}

std::unique_ptr<BatchSource> RowsOf(std::shared_ptr<dataset::MinibatchSource> source,
                                    RowBatches::Options options, RowBatches::ReadRow read_row) {
  return std::make_unique<RowBatches>(std::move(source), std::move(options), std::move(read_row));
}

std::vector<float> FirstValues(const DataBatch& batch) {
  const std::vector<float>& values = batch.tops[0].values;
  return {values.begin(), values.begin() + batch.rows.size()};
}

TEST(RowBatches, DeliversRowsInOrderAndFewerAtTheEndOfAnEpoch) {
  Prefetcher prefetcher(
      1, RowsOf(SourceOf({CountingBatch(2), CountingBatch(3, 2)}), Options(2), ReadX()));
  for (int epoch = 0; epoch < 3; ++epoch) {
    EXPECT_THAT(FirstValues(prefetcher.Next()), ElementsAre(0, 1));
    const DataBatch& second = prefetcher.Next();
    EXPECT_THAT(FirstValues(second), ElementsAre(2, 3));
    EXPECT_THAT(second.tops[1].values, ElementsAre(-2, -2, -3, -3));
    EXPECT_THAT(FirstValues(prefetcher.Next()), ElementsAre(4));
    EXPECT_THAT(FirstValues(prefetcher.Next()), IsEmpty());
    EXPECT_THAT(FirstValues(prefetcher.Next()), IsEmpty());
    prefetcher.NextEpoch();
  }
}

TEST(RowBatches, SkipsTheRestOfAnEpoch) {
  Prefetcher prefetcher(1, RowsOf(SourceOf({CountingBatch(9)}), Options(2), ReadX()));
  EXPECT_THAT(FirstValues(prefetcher.Next()), ElementsAre(0, 1));
  prefetcher.NextEpoch();
  EXPECT_THAT(FirstValues(prefetcher.Next()), ElementsAre(0, 1));
}

TEST(RowBatches, ReplacesInvalidRowsByFollowingOnesAndNamesThem) {
  Prefetcher prefetcher(1, RowsOf(SourceOf({CountingBatch(7)}), Options(3, 2),
                                  ReadX([](int64_t x) { return x == 0 || x == 2 || x == 6; })));
  const DataBatch& first = prefetcher.Next();
  EXPECT_THAT(FirstValues(first), ElementsAre(1, 3, 4));
  EXPECT_EQ(first.rows.rows[1].index, 3);
  EXPECT_THAT(first.tops[1].values, ElementsAre(-1, -1, -3, -3, -4, -4));
  ASSERT_EQ(first.invalid_rows.size(), 2u);
  EXPECT_EQ(first.invalid_rows[1].id, "00000002");
  EXPECT_EQ(first.invalid_rows[1].reason, "2 is bad");
  const DataBatch& second = prefetcher.Next();
  EXPECT_THAT(FirstValues(second), ElementsAre(5));
  EXPECT_EQ(second.invalid_rows.size(), 1u);
}

TEST(RowBatches, EndsTheEpochIfAllRowsAreInvalid) {
  Prefetcher prefetcher(
      1, RowsOf(SourceOf({CountingBatch(5)}), Options(2), ReadX([](int64_t) { return true; })));
  const DataBatch& batch = prefetcher.Next();
  EXPECT_EQ(batch.rows.size(), 0);
  EXPECT_EQ(batch.invalid_rows.size(), 5u);
  EXPECT_EQ(prefetcher.Next().invalid_rows.size(), 0u);
}

// A source that records how many rows are requested. All requests must be equal, so that rows can
// be distributed over several devices.
class CountingSource : public dataset::MinibatchSource {
 public:
  int64_t Next(int64_t max_rows, dataset::Minibatch* out) override {
    requests.push_back(max_rows);
    return inner_.Next(max_rows, out);
  }
  void NextEpoch() override { inner_.NextEpoch(); }
  int64_t epoch() const override { return inner_.epoch(); }

  std::vector<int64_t> requests;

 private:
  dataset::MemorySource inner_{{CountingBatch(10)}};
};

TEST(RowBatches, AlwaysRequestsWholeMinibatches) {
  auto source = std::make_shared<CountingSource>();
  Prefetcher prefetcher(1, RowsOf(source, Options(4), ReadX([](int64_t x) { return x % 4 == 1; })));
  EXPECT_THAT(FirstValues(prefetcher.Next()), ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(FirstValues(prefetcher.Next()), ElementsAre(6, 7, 8));
  EXPECT_THAT(FirstValues(prefetcher.Next()), IsEmpty());
  EXPECT_THAT(source->requests, ::testing::Each(4));
}

TEST(RowBatches, EveryRowHasItsOwnSeedForAnyNumberOfThreads) {
  const auto seeds_with = [](int threads) {
    std::vector<uint64_t> seeds(12);
    Prefetcher prefetcher(
        1, RowsOf(SourceOf({CountingBatch(6)}), Options(4, threads),
                  [&](const dataset::Minibatch::Row& row, uint64_t seed, const auto&) {
                    uint64_t& slot = seeds[row.index];
                    (slot == 0 ? slot : seeds[6 + row.index]) = seed;
                  }));
    while (prefetcher.Next().rows.size() > 0) {
    }
    prefetcher.NextEpoch();
    while (prefetcher.Next().rows.size() > 0) {
    }
    return seeds;
  };
  const std::vector<uint64_t> seeds = seeds_with(1);
  EXPECT_EQ(std::set<uint64_t>(seeds.begin(), seeds.end()).size(), 12u);
  EXPECT_EQ(seeds_with(3), seeds);
}

TEST(RowBatches, OtherFailuresAreThrown) {
  Prefetcher prefetcher(1, RowsOf(SourceOf({CountingBatch(5)}), Options(2),
                                  [](const dataset::Minibatch::Row& row, uint64_t, const auto&) {
                                    row.batch->column("pixels");
                                  }));
  for (int round = 0; round < 2; ++round) {
    try {
      prefetcher.Next();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    }
  }
}

}  // namespace
}  // namespace hearth::caffe
