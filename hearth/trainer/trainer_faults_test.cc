// Tests that faults of a rank are reported soon and completely, and end the other ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>

#include "hearth/trainer/testing/trainer_process_testing.h"

namespace hearth::trainer {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using Streams = TrainerHarness::Streams;

class TrainerFaultsTest : public TrainerProcessTest {
 protected:
  json WithSolver(json job, int max_iter, const std::string& more) {
    job["solver"]["text"] = TestSolver(max_iter, more);
    return job;
  }
};

std::string TextOf(const json& event) { return event["message"].get<std::string>(); }

// The text of the first warning.
std::string WarningOf(TrainerHarness& trainer) {
  while (auto event = trainer.NextEvent()) {
    if ((*event)["event"] == "log" && (*event)["level"] == "W") return (*event)["text"];
    if ((*event)["event"] == "error") ADD_FAILURE() << event->dump();
  }
  ADD_FAILURE() << "no warning";
  return "";
}

TEST_F(TrainerFaultsTest, ADeadFeederIsAnErrorNotAHang) {
  TrainerHarness trainer(TrainJob(), Streams{});
  trainer.WaitFor("ready");
  trainer.train().Fail(Error(ErrorCode::kInvalidArgument, "column x is not there"));
  EXPECT_THAT(ErrorOf(trainer)["message"].get<std::string>(), HasSubstr("column x is not there"));
  EXPECT_EQ(trainer.Wait(), 1);
}

TEST_F(TrainerFaultsTest, AnErrorOfOneRanksNetReachesTheOther) {
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
  const json reported = ErrorOf(good);
  EXPECT_EQ(reported["code"], own["code"]);
  EXPECT_EQ(reported["by_peer"], true);
  EXPECT_EQ(reported["lost"], false);
  EXPECT_THAT(reported["message"].get<std::string>(), HasSubstr("rank 1 on host host-1 failed: "));
  EXPECT_THAT(reported["message"].get<std::string>(), HasSubstr("ReLOU"));
  EXPECT_EQ(good.Wait(), 1);
  EXPECT_EQ(failing.Wait(), 1);
  ASSERT_TRUE(coordinator_->failure());
  EXPECT_EQ(coordinator_->failure()->rank, 1);
}

TEST_F(TrainerFaultsTest, ALayersErrorDuringTrainingNamesRankIterationAndLayer) {
  TrainerHarness good(RankJob(0, 2), Streams{}), failing(RankJob(1, 2), Streams{});
  good.FeedTrain({Numbers(0, 40)});
  // The second minibatch of rank 1 has rows without the column that the net reads.
  batch::BatchBuilder rows, other;
  AddRows(Numbers(0, 4), &rows);
  other.AddInt32("label", {1, 2, 3, 0});
  for (batch::BatchBuilder* builder : {&rows, &other}) {
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
  EXPECT_LT(SecondsSince(start), kReportedWithin);
  EXPECT_EQ(good.Wait(), 1);
}

TEST_F(TrainerFaultsTest, AKilledPeerIsReportedWithItsRankWithinASecond) {
  TrainerHarness survivor(RankJob(0, 2), Streams{}), victim(RankJob(1, 2), Streams{});
  survivor.FeedTrain({Numbers(0, 40)});
  victim.FeedTrain({Numbers(40, 80)});
  survivor.WaitFor("progress");
  const auto start = Clock::now();
  victim.Kill(SIGKILL);
  const json reported = ErrorOf(survivor);
  EXPECT_LT(SecondsSince(start), kReportedWithin);
  EXPECT_THAT(reported["message"].get<std::string>(), HasSubstr("rank 1 on host host-1"));
  EXPECT_EQ(reported["rank"], 1);
  EXPECT_EQ(reported["lost"], true);
  EXPECT_EQ(survivor.Wait(), 1);
}

TEST_F(TrainerFaultsTest, ACrashReportsSignalIterationAndLayer) {
  TrainerHarness good(RankJob(0, 2), Streams{}), victim(RankJob(1, 2), Streams{});
  good.FeedTrain({Numbers(0, 40)});
  victim.FeedTrain({Numbers(40, 80)});
  good.WaitFor("progress");
  const auto start = Clock::now();
  victim.Kill(SIGSEGV);
  const json own = ErrorOf(victim);
  EXPECT_EQ(own["rank"], 1);
  EXPECT_EQ(own["host"], "host-1");
  EXPECT_EQ(own["lost"], true);
  // The survivor has finished an iteration, for which it needed the victim's gradients. So the
  // victim has begun iteration 0.
  EXPECT_GE(own["iteration"], 0);
  EXPECT_THAT(TextOf(own), HasSubstr("its trainer process crashed with SIGSEGV"));
  EXPECT_THAT(TextOf(own), HasSubstr("iteration " + own["iteration"].dump() + ": "));
  EXPECT_EQ(victim.Wait(), -SIGSEGV);
  EXPECT_EQ(ErrorOf(good)["rank"], 1);
  EXPECT_LT(SecondsSince(start), kReportedWithin);
  EXPECT_EQ(good.Wait(), 1);
}

struct CrashSignal {
  int number;
  const char* name;
};

class CrashSignalTest : public TrainerFaultsTest,
                        public ::testing::WithParamInterface<CrashSignal> {};

TEST_P(CrashSignalTest, IsReported) {
  TrainerHarness victim(TrainJob(1000000), Streams{});
  victim.FeedTrain({Numbers(0, 40)});
  victim.WaitFor("progress");
  victim.Kill(GetParam().number);
  const json error = ErrorOf(victim);
  EXPECT_EQ(error["code"], "unavailable");
  EXPECT_THAT(TextOf(error), HasSubstr("iteration " + error["iteration"].dump() + ": "));
  const std::string cause =
      GetParam().number == SIGBUS
          ? ": a memory-mapped file (a database, a SequenceFile, spooled rows) was truncated, or "
            "its disk failed; do not change the files of a run, and start it again"
          : "";
  EXPECT_THAT(TextOf(error),
              ::testing::EndsWith(std::string("crashed with ") + GetParam().name + cause));
  EXPECT_EQ(victim.Wait(), -GetParam().number);
}

INSTANTIATE_TEST_SUITE_P(AllFive, CrashSignalTest,
                         ::testing::Values(CrashSignal{SIGSEGV, "SIGSEGV"},
                                           CrashSignal{SIGBUS, "SIGBUS"},
                                           CrashSignal{SIGFPE, "SIGFPE"},
                                           CrashSignal{SIGILL, "SIGILL"},
                                           CrashSignal{SIGABRT, "SIGABRT"}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(TrainerFaultsTest, ASilentPeerIsReportedAfterTheHeartbeatTimeout) {
  heartbeat_interval_s_ = 0.2;
  heartbeat_timeout_s_ = 2;
  TrainerHarness survivor(RankJob(0, 2), Streams{}), victim(RankJob(1, 2), Streams{});
  survivor.FeedTrain({Numbers(0, 40)});
  victim.FeedTrain({Numbers(40, 80)});
  survivor.WaitFor("progress");
  const auto start = Clock::now();
  victim.Kill(SIGSTOP);
  const json reported = ErrorOf(survivor);
  EXPECT_GT(SecondsSince(start), 1);
  EXPECT_LT(SecondsSince(start), 3);
  EXPECT_THAT(TextOf(reported), HasSubstr("rank 1 on host host-1 has been silent for 2"));
  EXPECT_EQ(survivor.Wait(), 1);
  EXPECT_TRUE(coordinator_->failure()->lost);
}

TEST_F(TrainerFaultsTest, OutOfMemoryNamesTheLayer) {
  json job = TrainJob();
  std::string text = job["net"]["text"];
  text.replace(text.find("num_output: 16"), 14, "num_output: 2000000000");
  job["net"]["text"] = text;
  TrainerHarness trainer(job, Streams{});
  const json error = ErrorOf(trainer);
  EXPECT_EQ(error["code"], "resource_exhausted");
  EXPECT_EQ(error["layer"], "ip1");
  EXPECT_EQ(trainer.Wait(), 1);
}

TEST_F(TrainerFaultsTest, ANonFiniteLossIsReportedWithTheFirstLayer) {
  TrainerHarness trainer(WithSolver(TrainJob(), 30, "base_lr: 1e30 clip_gradients: -1"), Streams{});
  trainer.FeedTrain({Numbers(0, 40)});
  EXPECT_THAT(
      WarningOf(trainer),
      ::testing::ContainsRegex("iteration [0-9]+: the loss is -?(nan|inf); layer 'ip[12]' "));
  EXPECT_EQ(trainer.WaitFor("done")["iteration"], 30);
  int warnings = 0;
  for (const json& event : trainer.events()) warnings += event.value("level", "") == "W";
  EXPECT_EQ(warnings, 1);
}

TEST_F(TrainerFaultsTest, ANonFiniteLossStopsTheRunIfConfigured) {
  json job = WithSolver(TrainJob(), 30, "base_lr: 1e30 clip_gradients: -1");
  job["on_nan"] = "stop";
  TrainerHarness trainer(job, Streams{});
  trainer.FeedTrain({Numbers(0, 40)});
  const json error = ErrorOf(trainer);
  EXPECT_THAT(TextOf(error), HasSubstr(": the loss is "));
  EXPECT_THAT(TextOf(error), HasSubstr("try a lower base_lr"));
  EXPECT_THAT(error["layer"].get<std::string>(), ::testing::StartsWith("ip"));
  EXPECT_EQ(trainer.Wait(), 1);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("final.caffemodel")));
}

// RLIMIT_FSIZE simulates a full disk: the write fails in the middle of the file. An epoch has ten
// iterations, and the trainer waits for the rows of each epoch.
TEST_F(TrainerFaultsTest, ADiskThatIsFullForOneSnapshotCostsOnlyThatSnapshot) {
  TrainerHarness trainer(WithSolver(TrainJob(), 40, "snapshot: 15 display: 0"), {.epochs = true});
  trainer.WaitFor("rows");
  const rlimit full{100, RLIM_INFINITY}, free{RLIM_INFINITY, RLIM_INFINITY};
  ASSERT_EQ(prlimit(trainer.pid(), RLIMIT_FSIZE, &full, nullptr), 0);
  for (int epoch = 0; epoch < 2; ++epoch) WriteEpoch(&trainer.train(), {Numbers(0, 40)});
  const std::string warning = WarningOf(trainer);
  ASSERT_EQ(prlimit(trainer.pid(), RLIMIT_FSIZE, &free, nullptr), 0);
  EXPECT_THAT(warning, HasSubstr("No snapshot after iteration 15"));
  EXPECT_THAT(warning, HasSubstr("File too large"));
  for (int epoch = 2; epoch < 4; ++epoch) WriteEpoch(&trainer.train(), {Numbers(0, 40)});
  EXPECT_EQ(trainer.WaitFor("done")["iteration"], 40);
  EXPECT_EQ(trainer.Wait(), 0);
}

TEST_F(TrainerFaultsTest, AModelThatCannotBeWrittenIsAnError) {
  TrainerHarness trainer(TrainJob(20), {.epochs = true});
  trainer.WaitFor("rows");
  const rlimit full{100, RLIM_INFINITY};
  ASSERT_EQ(prlimit(trainer.pid(), RLIMIT_FSIZE, &full, nullptr), 0);
  for (int epoch = 0; epoch < 2; ++epoch) WriteEpoch(&trainer.train(), {Numbers(0, 40)});
  EXPECT_THAT(TextOf(ErrorOf(trainer)), HasSubstr("final.caffemodel: File too large"));
  EXPECT_EQ(trainer.Wait(), 1);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path("")), {}), 0);
}

}  // namespace
}  // namespace hearth::trainer
