#include "hearth/trainer/job/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "hearth/base/error.h"

namespace hearth::trainer {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json TrainJob() {
  return {{"mode", "train"},
          {"token", "00ff"},
          {"coordinator", {{"host", "10.0.0.1"}, {"port", 4711}}},
          {"generation", 3},
          {"rank", 1},
          {"world", 2},
          {"devices", 2},
          {"solver", {{"path", "s.prototxt"}, {"text", "max_iter: 1"}}},
          {"net", {{"path", "n.prototxt"}, {"text", "name: \"n\""}}},
          {"streams", {{"train", {{"ring_fd", 5}, {"signal_fd", 6}}}}}};
}

std::string ErrorOf(const json& job) {
  try {
    ParseJob(job.dump());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  }
  return "no error";
}

TEST(JobTest, ReadsAllFields) {
  const Job job = ParseJob(TrainJob().dump());
  EXPECT_EQ(job.mode, Mode::kTrain);
  EXPECT_EQ(job.coordinator->host, "10.0.0.1");
  EXPECT_EQ(job.coordinator->port, 4711);
  EXPECT_EQ(job.generation, 3u);
  EXPECT_EQ(job.collective_world(), 4);
  EXPECT_EQ(job.train->ring_fd, 5);
  EXPECT_EQ(job.invalid_row_limit().rows, -1);
  EXPECT_EQ(job.invalid_row_limit().fraction, -1);
  EXPECT_FALSE(job.test);
}

TEST(JobTest, ErrorsNameTheFieldItsValueAndTheAllowedValues) {
  json job = TrainJob();
  job["coordinator"]["port"] = 70000;
  EXPECT_THAT(ErrorOf(job), HasSubstr("\"coordinator.port\" must be an integer from 1 to 65535, "
                                      "got 70000"));
  job = TrainJob();
  job["rank"] = 2;
  EXPECT_THAT(ErrorOf(job), HasSubstr("\"rank\" must be an integer from 0 to 1, got 2"));
  job = TrainJob();
  job["devices"] = "two";
  EXPECT_THAT(ErrorOf(job), HasSubstr("\"devices\""));
  job = TrainJob();
  job["max_bad_records"] = "1.5";
  EXPECT_THAT(ErrorOf(job), HasSubstr("\"max_bad_records\" must be a number of rows (10) or a "
                                      "fraction of them (0.01), got \"1.5\""));
  job = TrainJob();
  job["streams"]["train"].erase("signal_fd");
  EXPECT_THAT(ErrorOf(job), HasSubstr("\"streams.train.signal_fd\""));
}

TEST(JobTest, RejectsMisspeltFieldsByName) {
  json job = TrainJob();
  job["snapshots"] = "x";
  EXPECT_THAT(ErrorOf(job), HasSubstr("unknown field \"snapshots\""));
}

TEST(JobTest, NeverQuotesTheToken) {
  json job = TrainJob();
  job["token"] = json::array({"5ec3e7"});
  EXPECT_THAT(ErrorOf(job), ::testing::Not(HasSubstr("5ec3e7")));
  EXPECT_THAT(ErrorOf(job), HasSubstr("\"token\""));
}

TEST(JobTest, EachModeNamesItsRequiredFields) {
  json job = TrainJob();
  job["validate"] = true;
  EXPECT_THAT(ErrorOf(job), HasSubstr("\"test\" stream"));
  job = TrainJob();
  job["mode"] = "features";
  EXPECT_THAT(ErrorOf(job), HasSubstr("\"test\" stream"));
  job["streams"]["test"] = {{"ring_fd", 7}, {"signal_fd", 8}, {"spill_dir", "/disk2"}};
  EXPECT_THAT(ErrorOf(job), HasSubstr("\"results\""));
  job["results"] = {{"ring_fd", 9}, {"signal_fd", 10}};
  EXPECT_THAT(ErrorOf(job), HasSubstr("\"features\""));
  job = TrainJob();
  job["resume"] = true;
  EXPECT_THAT(ErrorOf(job), HasSubstr("\"resume\" must be true with a \"snapshot\""));
  job = TrainJob();
  job["coordinator"] = nullptr;
  EXPECT_THAT(ErrorOf(job), HasSubstr("\"coordinator\""));
}

TEST(JobTest, RejectsTextThatIsNotAJob) {
  EXPECT_THROW(ParseJob("{"), Error);
  EXPECT_THROW(ParseJob("[]"), Error);
  EXPECT_THROW(ParseJob(""), Error);
}

}  // namespace
}  // namespace hearth::trainer
