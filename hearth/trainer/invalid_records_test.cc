// Tests that invalid images are skipped together with their labels, named and counted, up to a
// limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "hearth/image/encode.h"
#include "hearth/image/image.h"
#include "hearth/trainer/testing/trainer_process_testing.h"

namespace hearth::trainer {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using Streams = TrainerHarness::Streams;

struct Row {
  std::string id, image;
  int32_t label;
};
using Rows = std::vector<Row>;

std::string Image(int number, int64_t width = 4) {
  image::Image image{4, width, 1, std::vector<uint8_t>(4 * static_cast<size_t>(width))};
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<uint8_t>(37 * static_cast<size_t>(number) + 11 * i);
  }
  return image::EncodePng(image);
}

Row Good(int number) { return {fmt::format("good{}", number), Image(number), number % 4}; }

Rows GoodRows(int begin, int end) {
  Rows rows;
  for (int number = begin; number < end; ++number) rows.push_back(Good(number));
  return rows;
}

// One row of each kind: not an image, truncated, with a flipped bit, of another size, and empty.
Rows InvalidRowsOf(const std::string& name) {
  std::string flipped = Image(1);
  flipped[flipped.size() / 2] ^= 0x10;
  return {{name + "-text", "not an image", 3},
          {name + "-cut", Image(1).substr(0, 50), 3},
          {name + "-flipped", flipped, 3},
          {name + "-wide", Image(1, 5), 3},
          {name + "-empty", "", 3}};
}

// The invalid rows, spread among the valid ones.
Rows MixedRows(const Rows& good, const Rows& bad) {
  Rows rows;
  for (size_t i = 0; i < good.size(); ++i) {
    if (i < bad.size()) rows.push_back(bad[i]);
    rows.push_back(good[i]);
  }
  return rows;
}

void FeedBatches(ring::RingWriter& writer, const Rows& rows) {
  std::vector<std::string> ids, images;
  std::vector<int32_t> labels;
  for (const Row& row : rows) {
    ids.push_back(row.id);
    images.push_back(row.image);
    labels.push_back(row.label);
  }
  batch::BatchBuilder builder;
  builder.AddString("id", ids).AddBinary("data", images).AddInt32("label", labels);
  ArrowSchema schema;
  ArrowArray array;
  builder.Export(&schema, &array);
  writer.WriteArrow(schema, array, Deadline::After(10));
  writer.WriteEnd(Deadline::After(10));
}

std::string ImageFedNet() {
  std::string net;
  for (const char* phase : {"TRAIN", "TEST"}) {
    net += fmt::format(R"(
layer {{ name: "data" type: "MemoryData" top: "data" top: "label" include {{ phase: {} }}
  source_class: "com.yahoo.ml.caffe.ImageDataFrame"
  transform_param {{ scale: 0.00390625 }}
  memory_data_param {{ source: "unused" batch_size: 4 channels: 1 height: 4 width: 4
    image_encoded: true }} }})",
                       phase);
  }
  return net + R"(
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";
}

class InvalidRecordsTest : public TrainerProcessTest {
 protected:
  // Makes a job of the fixture train on images.
  static json OnImages(json job, int max_iter, const std::string& more = "") {
    job["net"]["text"] = ImageFedNet();
    job["solver"]["text"] = TestSolver(max_iter, more);
    return job;
  }

  static std::vector<std::string> WarningsOf(const TrainerHarness& trainer) {
    std::vector<std::string> warnings;
    for (const json& event : trainer.events()) {
      if (event.value("level", "") == "W") warnings.push_back(event["text"]);
    }
    return warnings;
  }

  // One process with snapshots; `attempt` 1 resumes from the last one, as after a failure.
  json RunAgain(int attempt, const json& limit, int max_iter, const Rows& rows) {
    const std::string prefix = folder_.path("snap");
    json job = OnImages(TrainJob(), max_iter,
                        fmt::format("snapshot: {} snapshot_prefix: \"{}\"", snapshot_, prefix));
    job.update(limit);
    job["run"] = run_;
    job["generation"] = attempt;
    TrainerHarness trainer(job, Streams{});
    FeedBatches(trainer.train(), rows);
    while (auto event = trainer.NextEvent()) {
      if ((*event)["event"] == "done" || (*event)["event"] == "error") return *event;
    }
    return {};
  }

  int snapshot_ = 7;
  std::string run_ = "a run";

  json DoneOn(const Rows& rows, std::vector<std::string>* warnings = nullptr) {
    TrainerHarness trainer(OnImages(TrainJob(), 3), Streams{});
    FeedBatches(trainer.train(), rows);
    json done = trainer.WaitFor("done");
    if (warnings != nullptr) *warnings = WarningsOf(trainer);
    return done;
  }
};

TEST_F(InvalidRecordsTest, SkipsThemWithTheirLabels) {
  const Rows good = GoodRows(0, 12), bad = InvalidRowsOf("bad");
  std::vector<std::string> warnings;
  const json without = DoneOn(good), with = DoneOn(MixedRows(good, bad), &warnings);
  EXPECT_EQ(without["invalid_rows"], 0);
  EXPECT_EQ(with["invalid_rows"], bad.size());
  EXPECT_EQ(with["weights_sha256"], without["weights_sha256"]);
  for (const auto& [id, reason] : std::vector<std::pair<std::string, std::string>>{
           {"bad-text", "neither a JPEG nor a PNG image"},
           {"bad-cut", "PNG image of 4 x 4 pixels"},
           {"bad-flipped", "PNG image"},
           {"bad-wide", "an image of 1 x 4 x 5 does not match the layer's 1 x 4 x 4"},
           {"bad-empty", "0 bytes"}}) {
    EXPECT_THAT(warnings, Contains(AllOf(HasSubstr("Skipping row " + id + " with its labels"),
                                         HasSubstr(reason))));
  }
}

TEST_F(InvalidRecordsTest, CountsThemOverAllRanksAgainstTheLimit) {
  for (const int allowed : {10, 9}) {
    std::vector<std::unique_ptr<TrainerHarness>> ranks;
    coordinator_.reset();
    for (int rank = 0; rank < 2; ++rank) {
      json job = OnImages(RankJob(rank, 2), 3);
      job["max_bad_records"] = std::to_string(allowed);
      ranks.push_back(std::make_unique<TrainerHarness>(job, Streams{}));
      FeedBatches(ranks.back()->train(),
                  MixedRows(GoodRows(0, 12), InvalidRowsOf(fmt::format("r{}", rank))));
    }
    if (allowed == 10) {
      for (auto& rank : ranks) EXPECT_EQ(rank->WaitFor("done")["invalid_rows"], 10);
      continue;
    }
    EXPECT_THAT(
        ErrorOf(*ranks[0])["message"].get<std::string>(),
        AllOf(HasSubstr("10 of "), HasSubstr("but -maxBadRecords allows 9"), HasSubstr("-text, ")));
    for (auto& rank : ranks) EXPECT_EQ(rank->Wait(), 1);
  }
}

TEST_F(InvalidRecordsTest, CountsThemAgainInEachEpoch) {
  json job = OnImages(TrainJob(), 12);  // four epochs of twelve rows
  job["max_bad_records"] = "5";
  TrainerHarness trainer(job, Streams{});
  FeedBatches(trainer.train(), MixedRows(GoodRows(0, 12), InvalidRowsOf("bad")));
  // The training may end before it reaches the last epoch's invalid rows, so only three epochs are
  // certain.
  EXPECT_GE(trainer.WaitFor("done")["invalid_rows"], 3 * 5);
  EXPECT_EQ(WarningsOf(trainer).size(), 5u);
}

TEST_F(InvalidRecordsTest, FailsAtTheEndOfTheEpochAboveAFraction) {
  json job = OnImages(TrainJob(), 12);
  job["max_bad_records"] = "0.25";  // 5 of 17 exceed it
  TrainerHarness trainer(job, Streams{});
  FeedBatches(trainer.train(), MixedRows(GoodRows(0, 12), InvalidRowsOf("bad")));
  const json error = ErrorOf(trainer);
  EXPECT_EQ(error["iteration"], 3);
  EXPECT_THAT(error["message"].get<std::string>(),
              HasSubstr("5 of 17 rows cannot be used, but -maxBadRecords allows a fraction of "
                        "0.25"));
  EXPECT_EQ(trainer.Wait(), 1);
}

// Uses 44 rows, 4 of them invalid, and ten iterations per epoch. Rows that are replayed to reach
// the snapshot's position must count towards the limit only once.
TEST_F(InvalidRecordsTest, CountsInARestartAsInAnUninterruptedRun) {
  const Rows rows = MixedRows(GoodRows(0, 40), [] {
    Rows bad = InvalidRowsOf("bad");
    bad.pop_back();
    return bad;
  }());
  struct Case {
    json limit;
    int snapshot, iterations;
  };
  for (const Case& run :
       {Case{{{"max_bad_records", "0.1"}}, 7, 12}, Case{{{"max_bad_records", "0.1"}}, 13, 22},
        Case{{{"max_bad_records", "4"}}, 7, 12}, Case{{{"max_bad_records", "4"}}, 13, 22}}) {
    SCOPED_TRACE(run.limit.dump() + fmt::format(" after {}", run.snapshot));
    snapshot_ = run.snapshot;
    run_ += "'s next";
    const json whole = RunAgain(0, run.limit, run.iterations, rows);
    ASSERT_EQ(whole["event"], "done") << whole;
    const json again = RunAgain(1, run.limit, run.iterations, rows);
    ASSERT_EQ(again["event"], "done") << again;
    EXPECT_EQ(again["invalid_rows"], whole["invalid_rows"]);
    EXPECT_EQ(again["weights_sha256"], whole["weights_sha256"]);
  }
}

TEST_F(InvalidRecordsTest, FailsAboveTheLimitInARestartAndNamesEarlierRows) {
  const Rows rows =
      MixedRows(GoodRows(0, 40), InvalidRowsOf("bad"));  // 5 of 45, early in the epoch
  snapshot_ = 7;
  ASSERT_EQ(RunAgain(0, {{"max_bad_records", "5"}}, 7, rows)["event"], "done");
  const json error = RunAgain(1, {{"max_bad_records", "0.1"}}, 22, rows);
  EXPECT_THAT(error.value("message", ""),
              AllOf(HasSubstr("5 of 45 rows cannot be used"), HasSubstr("bad-text")));
}

// A later epoch may begin with invalid rows, so its first minibatches must not be checked alone.
TEST_F(InvalidRecordsTest, DoesNotCheckTheBeginningOfALaterEpochAlone) {
  const Rows rows = MixedRows(GoodRows(0, 40), InvalidRowsOf("bad"));
  for (int iterations = 11; iterations <= 19; iterations += 2) {
    json job = OnImages(TrainJob(), iterations);
    job["max_bad_records"] = "0.12";  // allows 5 of 45
    TrainerHarness trainer(job, Streams{});
    FeedBatches(trainer.train(), rows);
    ASSERT_EQ(trainer.WaitFor("done")["event"], "done") << iterations;
  }
}

TEST_F(InvalidRecordsTest, FailsIfAllRowsAreInvalid) {
  TrainerHarness trainer(OnImages(TrainJob(), 3), Streams{});
  FeedBatches(trainer.train(), InvalidRowsOf("bad"));
  EXPECT_THAT(ErrorOf(trainer)["message"].get<std::string>(),
              AllOf(HasSubstr("no rows to train on: none of"), HasSubstr("can be used: bad")));
  EXPECT_EQ(trainer.Wait(), 1);
}

// An error that does not concern a single image ends the transformer thread and the run.
TEST_F(InvalidRecordsTest, ATransformerThreadsFailureNamesRankIterationAndLayer) {
  std::vector<std::unique_ptr<TrainerHarness>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    json job = OnImages(RankJob(rank, 2), 100000);
    job["transform_threads"] = 3;
    ranks.push_back(std::make_unique<TrainerHarness>(job, Streams{}));
  }
  FeedBatches(ranks[0]->train(), GoodRows(0, 40));
  batch::BatchBuilder good, odd;
  const std::vector<std::string> images(8, Image(1));
  good.AddBinary("data", images).AddInt32("label", std::vector<int32_t>(8, 1));
  odd.AddBinary("data", images).AddInt32("label", std::vector<int32_t>(8, 1));
  odd.AddString("encoded", std::vector<std::string>(8, "yes"));
  for (batch::BatchBuilder* builder : {&good, &odd}) {
    ArrowSchema schema;
    ArrowArray array;
    builder->Export(&schema, &array);
    ranks[1]->train().WriteArrow(schema, array, Deadline::After(10));
  }
  const json own = ErrorOf(*ranks[1]);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(own["rank"], 1);
  EXPECT_EQ(own["host"], "host-1");
  EXPECT_EQ(own["iteration"], 2);
  EXPECT_EQ(own["layer"], "data");
  EXPECT_THAT(own["message"].get<std::string>(),
              HasSubstr("column 'encoded' has type string, but a whole number is needed"));
  EXPECT_EQ(ErrorOf(*ranks[0])["rank"], 1);
  EXPECT_LT(SecondsSince(start), kReportedWithin);
}

TEST_F(InvalidRecordsTest, CountsValidationRows) {
  json job = OnImages(TrainJob(), 3, "test_interval: 2 test_iter: 3");
  job["validate"] = true;
  job["max_bad_records"] = "4";
  TrainerHarness trainer(job, Streams{.test = true});
  FeedBatches(trainer.test(), MixedRows(GoodRows(0, 7), InvalidRowsOf("held-out")));
  FeedBatches(trainer.train(), GoodRows(0, 12));
  EXPECT_THAT(ErrorOf(trainer)["message"].get<std::string>(),
              AllOf(HasSubstr("5 of 12 rows cannot be used"), HasSubstr("held-out-text")));
  EXPECT_EQ(trainer.Wait(), 1);
}

TEST_F(InvalidRecordsTest, FeaturesSkipThemAndFailAboveTheLimit) {
  for (const int allowed : {5, 4}) {
    json job = OnImages(TrainJob(), 3);
    job.erase("solver");
    job["mode"] = "features";
    job["features"] = {"ip"};
    job["max_bad_records"] = std::to_string(allowed);
    TrainerHarness trainer(job, Streams{.train = false, .test = true, .results = true});
    FeedBatches(trainer.test(), MixedRows(GoodRows(0, 12), InvalidRowsOf("bad")));
    if (allowed == 5) {
      const json done = trainer.WaitFor("done");
      EXPECT_EQ(done["rows"], 12);
      EXPECT_EQ(done["invalid_rows"], 5);
    } else {
      EXPECT_THAT(ErrorOf(trainer)["message"].get<std::string>(), HasSubstr("bad-text"));
      EXPECT_EQ(trainer.Wait(), 1);
    }
  }
}

}  // namespace
}  // namespace hearth::trainer
