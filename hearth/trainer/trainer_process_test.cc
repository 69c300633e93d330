#include "hearth/trainer/trainer_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <map>

#include "hearth/caffe/snapshot/snapshot.h"
#include "hearth/trainer/testing/trainer_process_testing.h"

namespace hearth::trainer {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using Streams = TrainerHarness::Streams;

TEST_F(TrainerProcessTest, TrainsReportsAndWritesTheModel) {
  TrainerHarness trainer(TrainJob(30), Streams{});
  trainer.FeedTrain({Numbers(0, 10)});
  const json done = trainer.WaitFor("done");
  EXPECT_EQ(done["iteration"], 30);
  EXPECT_EQ(trainer.Wait(), 0);
  EXPECT_EQ(caffe::ReadModel(folder_.path("final.caffemodel")).name(), "tiny");
  std::map<std::string, int> kinds;
  for (const json& event : trainer.events()) ++kinds[event["event"]];
  EXPECT_EQ(kinds["ready"], 1);
  EXPECT_GE(kinds["progress"], 1);
  EXPECT_GE(kinds["log"], 3);
}

TEST_F(TrainerProcessTest, LogLinesAreInCaffesFormat) {
  TrainerHarness trainer(TrainJob(6), Streams{});
  trainer.FeedTrain({Numbers(0, 10)});
  trainer.WaitFor("done");
  std::string log;
  for (const json& event : trainer.events()) {
    if (event["event"] == "log") log += event["text"].get<std::string>() + "\n";
  }
  EXPECT_THAT(log,
              ::testing::ContainsRegex(
                  "I[0-9]{4} [0-9:]{8}\\.[0-9]{6} +[0-9]+ [a-z_]+\\.cc:[0-9]+\\] Iteration 5 "));
  EXPECT_THAT(log, HasSubstr("Train net output #0: loss = "));
  EXPECT_THAT(log, HasSubstr("Iteration 5, lr = 0.2"));
}

TEST_F(TrainerProcessTest, AnUnreadableJobIsAnErrorEvent) {
  json job = TrainJob();
  job["world"] = 0;
  TrainerHarness trainer(job, Streams{});
  const auto event = trainer.NextEvent();
  ASSERT_TRUE(event);
  EXPECT_EQ((*event)["event"], "error");
  EXPECT_EQ((*event)["code"], "invalid_argument");
  EXPECT_THAT((*event)["message"].get<std::string>(), HasSubstr("\"world\""));
  EXPECT_EQ(trainer.Wait(), 1);
}

TEST_F(TrainerProcessTest, ExitsAtOnceWhenItsWorkerDies) {
  TrainerHarness trainer(TrainJob(), Streams{});
  trainer.WaitFor("ready");  // the trainer now waits for rows that never arrive
  const auto start = Clock::now();
  trainer.CloseControl();
  EXPECT_EQ(trainer.Wait(), 2);
  EXPECT_LT(SecondsSince(start), kReportedWithin);
}

TEST_F(TrainerProcessTest, IsDoneBeforeItsFeederIs) {
  TrainerHarness trainer(TrainJob(6), Streams{});
  batch::BatchBuilder rows;
  AddRows(Numbers(0, 24), &rows);  // the rows of six iterations, without an end of the stream
  ArrowSchema schema;
  ArrowArray array;
  rows.Export(&schema, &array);
  trainer.train().WriteArrow(schema, array, Deadline::After(10));
  trainer.WaitFor("done");
  EXPECT_EQ(trainer.Wait(), 0);
}

// Tests of the modes "features" and "test".

class FeaturesTest : public TrainerProcessTest {
 protected:
  void SetUp() override {
    TrainerHarness trainer(TrainJob(50), Streams{});
    trainer.FeedTrain({Numbers(0, 30)});
    trainer.WaitFor("done");
    ASSERT_EQ(trainer.Wait(), 0);
  }

  json FeatureJob(int batch_size, const char* mode = "features") const {
    return {{"mode", mode},
            {"rank", 0},
            {"world", 1},
            {"host", "here"},
            {"net", {{"path", "n.prototxt"}, {"text", TestNet(batch_size)}}},
            {"weights", {folder_.path("final.caffemodel")}},
            {"features", {"ip2", "label", "loss"}}};
  }

  static void Write(ring::RingWriter& ring, const std::vector<int64_t>& numbers) {
    batch::BatchBuilder builder;
    AddRows(numbers, &builder);
    ArrowSchema schema;
    ArrowArray array;
    builder.Export(&schema, &array);
    ring.WriteArrow(schema, array, Deadline::After(10));
  }

  // Returns the rows up to the next mark, by id. A duplicate row fails the test.
  static std::map<std::string, std::vector<std::vector<float>>> ReadPartition(
      ring::RingReader& ring, const std::vector<std::string>& columns) {
    std::map<std::string, std::vector<std::vector<float>>> rows;
    std::vector<float> scratch;
    for (;;) {
      const ring::RingEntry entry = ring.Next(Deadline::After(20));
      if (entry.kind != ring::EntryKind::kBatch) return rows;
      const batch::BatchView batch(entry.image);
      for (int64_t row = 0; row < batch.rows(); ++row) {
        auto& values = rows[std::string(batch.column("SampleID").Bytes(row))];
        EXPECT_TRUE(values.empty()) << "duplicate row";
        for (const auto& column : columns) {
          const auto list = batch.column(column).FloatList(row, &scratch);
          values.emplace_back(list.begin(), list.end());
        }
      }
    }
  }
};

TEST_F(FeaturesTest, EachRowComesOnceWithTheSameValuesForEveryBatchSize) {
  std::map<std::string, std::vector<std::vector<float>>> expected;
  for (const int batch_size : {1, 7, 64}) {
    SCOPED_TRACE(batch_size);
    TrainerHarness trainer(FeatureJob(batch_size), Streams{false, true, true});
    std::map<std::string, std::vector<std::vector<float>>> all;
    // Sends partitions of 50, 0 and 20 rows to one process.
    for (const auto& [begin, end] : {std::pair{0, 50}, {50, 50}, {50, 70}}) {
      Write(trainer.test(), Numbers(begin, end));
      trainer.test().WriteFlush(Deadline::After(10));
      const auto rows = ReadPartition(trainer.results(), {"ip2", "label"});
      EXPECT_EQ(rows.size(), static_cast<size_t>(end - begin));
      all.insert(rows.begin(), rows.end());
    }
    EXPECT_EQ(all.size(), 70u);
    if (expected.empty()) expected = all;
    for (const auto& [id, values] : expected) {
      ASSERT_TRUE(all.count(id)) << id;
      ASSERT_EQ(all[id][0].size(), 4u);
      for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(all[id][0][i], values[0][i], 1e-5) << id;
      EXPECT_EQ(all[id][1], values[1]) << id;
    }
    trainer.CloseControl();
    EXPECT_EQ(trainer.Wait(), 2);
  }
}

TEST_F(FeaturesTest, ABatchValueBelongsToEveryRow) {
  TrainerHarness trainer(FeatureJob(4), Streams{false, true, true});
  Write(trainer.test(), Numbers(0, 4));
  trainer.test().WriteEnd(Deadline::After(10));
  const auto rows = ReadPartition(trainer.results(), {"loss"});
  ASSERT_EQ(rows.size(), 4u);
  for (const auto& [id, values] : rows) EXPECT_EQ(values, rows.begin()->second);
  EXPECT_EQ(trainer.WaitFor("done")["rows"], 4);
  EXPECT_EQ(trainer.Wait(), 0);
}

TEST_F(FeaturesTest, TestModeReturnsTheOutputsOfTheTestNet) {
  TrainerHarness trainer(FeatureJob(10, "test"), Streams{false, true, true});
  Write(trainer.test(), Numbers(0, 30));
  trainer.test().WriteFlush(Deadline::After(10));
  const auto rows = ReadPartition(trainer.results(), {"accuracy", "loss"});
  EXPECT_EQ(rows.size(), 30u);
  EXPECT_EQ(rows.begin()->second[0].size(), 1u);
}

TEST_F(FeaturesTest, AMissingBlobIsNamedWithTheExistingOnes) {
  json job = FeatureJob(4);
  job["features"] = {"ip3"};
  TrainerHarness trainer(job, Streams{false, true, true});
  const json error = ErrorOf(trainer);
  EXPECT_EQ(error["code"], "not_found");
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("\"ip3\""));
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("ip2"));
  EXPECT_EQ(trainer.Wait(), 1);
}

}  // namespace
}  // namespace hearth::trainer
