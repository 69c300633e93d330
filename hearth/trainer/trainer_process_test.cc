#include "hearth/trainer/trainer_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <map>

#include "hearth/base/hmac.h"
#include "hearth/caffe/net_file.h"
#include "hearth/caffe/snapshot.h"
#include "hearth/rendezvous/coordinator.h"
#include "hearth/trainer/trainer_harness.h"

namespace hearth::trainer {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using Streams = TrainerHarness::Streams;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class TrainerProcessTest : public ::testing::Test {
 protected:
  json TrainJob(int max_iter = 100000) const {
    return {{"mode", "train"},
            {"rank", 0},
            {"world", 1},
            {"host", "here"},
            {"solver", {{"path", "s.prototxt"}, {"text", TestSolver(max_iter)}}},
            {"net", {{"path", "n.prototxt"}, {"text", TestNet(4)}}},
            {"model", folder_.path("final.caffemodel")}};
  }

  // A job of one rank of a cluster, whose coordinator is made here.
  json RankJob(int rank, int world) {
    if (!coordinator_) {
      rendezvous::CoordinatorOptions options;
      options.world = world;
      options.token = token_;
      coordinator_.emplace(options);
    }
    json job = TrainJob();
    job["token"] = token_;
    job["coordinator"] = {{"host", "127.0.0.1"}, {"port", coordinator_->port()}};
    job["rank"] = rank;
    job["world"] = world;
    job["host"] = "host-" + std::to_string(rank);
    return job;
  }

  TestFolder folder_;
  const std::string token_ = NewToken();
  std::optional<rendezvous::Coordinator> coordinator_;
};

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

TEST_F(TrainerProcessTest, AJobThatCannotBeReadIsAnErrorEvent) {
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

TEST_F(TrainerProcessTest, EndsAtOnceWhenItsWorkerIsGone) {
  TrainerHarness trainer(TrainJob(), Streams{});
  trainer.WaitFor("ready");  // and now waits for rows that never come
  const auto start = Clock::now();
  trainer.CloseControl();
  EXPECT_EQ(trainer.Wait(5), 2);
  EXPECT_LT(SecondsSince(start), 1);
}

// The first "error" event, and the seconds until it came.
json ErrorOf(TrainerHarness& trainer) {
  while (auto event = trainer.NextEvent(20)) {
    if ((*event)["event"] == "error") return *event;
  }
  ADD_FAILURE() << "no error event";
  return {{"message", ""}, {"code", ""}, {"layer", ""}, {"iteration", 0}};
}

TEST_F(TrainerProcessTest, AFeederThatDiesIsAnErrorAndNoHang) {
  TrainerHarness trainer(TrainJob(), Streams{});
  trainer.WaitFor("ready");
  trainer.train().Fail(Error(ErrorCode::kInvalidArgument, "column x is not there"));
  EXPECT_THAT(ErrorOf(trainer)["message"].get<std::string>(), HasSubstr("column x is not there"));
  EXPECT_EQ(trainer.Wait(), 1);
}

TEST_F(TrainerProcessTest, AnErrorInOneRanksNetReachesTheOther) {
  json bad = RankJob(1, 2);
  std::string text = bad["net"]["text"];
  text.replace(text.find("\"ReLU\""), 6, "\"ReLOU\"");
  bad["net"]["text"] = text;
  TrainerHarness good(RankJob(0, 2), Streams{}), failing(bad, Streams{});
  good.FeedTrain({Numbers(0, 40)});
  failing.FeedTrain({Numbers(40, 80)});
  const json own = ErrorOf(failing);
  EXPECT_THAT(own["message"].get<std::string>(), HasSubstr("ReLOU"));
  EXPECT_EQ(own["rank"], 1);
  const json heard = ErrorOf(good);
  EXPECT_EQ(heard["code"], "aborted");
  EXPECT_THAT(heard["message"].get<std::string>(), HasSubstr("rank 1 on host host-1 failed: "));
  EXPECT_THAT(heard["message"].get<std::string>(), HasSubstr("ReLOU"));
  EXPECT_EQ(good.Wait(), 1);
  EXPECT_EQ(failing.Wait(), 1);
  ASSERT_TRUE(coordinator_->failure());
  EXPECT_EQ(coordinator_->failure()->rank, 1);
}

TEST_F(TrainerProcessTest, ALayersErrorInTheMiddleNamesRankIterationAndLayer) {
  TrainerHarness good(RankJob(0, 2), Streams{}), failing(RankJob(1, 2), Streams{});
  good.FeedTrain({Numbers(0, 40)});
  // The second minibatch of rank 1 has rows without the column that the net reads.
  feed::BatchBuilder rows, other;
  AddRows(Numbers(0, 4), &rows);
  other.AddInt32("label", {1, 2, 3, 0});
  for (feed::BatchBuilder* builder : {&rows, &other}) {
    ArrowSchema schema;
    ArrowArray array;
    builder->Export(&schema, &array);
    failing.train().WriteArrow(schema, array, Deadline::After(10));
  }
  const json own = ErrorOf(failing);
  const auto start = Clock::now();
  EXPECT_EQ(own["layer"], "data");
  EXPECT_EQ(own["rank"], 1);
  EXPECT_EQ(own["iteration"], 1);
  EXPECT_THAT(ErrorOf(good)["message"].get<std::string>(), HasSubstr("rank 1 on host host-1"));
  EXPECT_LT(SecondsSince(start), 1);
  EXPECT_EQ(good.Wait(), 1);
}

TEST_F(TrainerProcessTest, AKilledPeerIsReportedWithItsRankWithinASecond) {
  TrainerHarness survivor(RankJob(0, 2), Streams{}), victim(RankJob(1, 2), Streams{});
  survivor.FeedTrain({Numbers(0, 40)});
  victim.FeedTrain({Numbers(40, 80)});
  survivor.WaitFor("progress");
  const auto start = Clock::now();
  victim.Kill(SIGKILL);
  const json heard = ErrorOf(survivor);
  EXPECT_LT(SecondsSince(start), 1);
  EXPECT_THAT(heard["message"].get<std::string>(), HasSubstr("rank 1 on host host-1"));
  EXPECT_EQ(heard["rank"], 1);
  EXPECT_EQ(survivor.Wait(), 1);
}

// --- features and test ---

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

  static void Write(feed::RingWriter& ring, const std::vector<int64_t>& numbers) {
    feed::BatchBuilder builder;
    AddRows(numbers, &builder);
    ArrowSchema schema;
    ArrowArray array;
    builder.Export(&schema, &array);
    ring.WriteArrow(schema, array, Deadline::After(10));
  }

  // Rows up to the next mark, by id; a row that comes twice fails the test.
  static std::map<std::string, std::vector<std::vector<float>>> ReadPartition(
      feed::RingReader& ring, const std::vector<std::string>& columns) {
    std::map<std::string, std::vector<std::vector<float>>> rows;
    std::vector<float> scratch;
    for (;;) {
      const feed::RingEntry entry = ring.Next(Deadline::After(20));
      if (entry.kind != feed::EntryKind::kBatch) return rows;
      const feed::BatchView batch(entry.image);
      for (int64_t row = 0; row < batch.rows(); ++row) {
        auto& values = rows[std::string(batch.column("SampleID").Bytes(row))];
        EXPECT_TRUE(values.empty()) << "a row came twice";
        for (const auto& column : columns) {
          const auto list = batch.column(column).FloatList(row, &scratch);
          values.emplace_back(list.begin(), list.end());
        }
      }
    }
  }
};

TEST_F(FeaturesTest, EachRowComesOnceWithTheSameValuesWhateverTheBatch) {
  std::map<std::string, std::vector<std::vector<float>>> expected;
  for (const int batch_size : {1, 7, 64}) {
    SCOPED_TRACE(batch_size);
    TrainerHarness trainer(FeatureJob(batch_size), Streams{false, true, true});
    std::map<std::string, std::vector<std::vector<float>>> all;
    // Partitions of 50, no and 20 rows, in one process.
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
    EXPECT_EQ(trainer.Wait(5), 2);
  }
}

TEST_F(FeaturesTest, ABatchValueBelongsToEveryRowAndTheEndIsAnswered) {
  TrainerHarness trainer(FeatureJob(4), Streams{false, true, true});
  Write(trainer.test(), Numbers(0, 4));
  trainer.test().WriteEnd(Deadline::After(10));
  const auto rows = ReadPartition(trainer.results(), {"loss"});
  ASSERT_EQ(rows.size(), 4u);
  for (const auto& [id, values] : rows) EXPECT_EQ(values, rows.begin()->second);
  EXPECT_EQ(trainer.WaitFor("done")["rows"], 4);
  EXPECT_EQ(trainer.Wait(), 0);
}

TEST_F(FeaturesTest, TestModeGivesTheOutputsOfTheTestNet) {
  TrainerHarness trainer(FeatureJob(10, "test"), Streams{false, true, true});
  Write(trainer.test(), Numbers(0, 30));
  trainer.test().WriteFlush(Deadline::After(10));
  const auto rows = ReadPartition(trainer.results(), {"accuracy", "loss"});
  EXPECT_EQ(rows.size(), 30u);
  EXPECT_EQ(rows.begin()->second[0].size(), 1u);
}

TEST_F(FeaturesTest, ABlobThatIsNotThereIsNamedWithThoseThatAre) {
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
