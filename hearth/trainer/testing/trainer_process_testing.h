// For tests: jobs for trainer processes, and their events.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "hearth/base/hmac.h"
#include "hearth/rendezvous/coordinator.h"
#include "hearth/trainer/testing/trainer_testing.h"

namespace hearth::trainer {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Seconds within which failures must be reported. Heartbeats, and the detection of missing ones,
// take longer.
inline constexpr double kReportedWithin = 1;

// Fixture with the jobs of trainer processes.
class TrainerProcessTest : public ::testing::Test {
 protected:
  nlohmann::json TrainJob(int max_iter = 100000) const {
    return {{"mode", "train"},
            {"rank", 0},
            {"world", 1},
            {"host", "here"},
            {"solver", {{"path", "s.prototxt"}, {"text", TestSolver(max_iter)}}},
            {"net", {{"path", "n.prototxt"}, {"text", TestNet(4)}}},
            {"model", folder_.path("final.caffemodel")}};
  }

  // The job of one rank of a cluster. The first call creates the cluster's coordinator.
  nlohmann::json RankJob(int rank, int world) {
    if (!coordinator_) {
      rendezvous::CoordinatorOptions options;
      options.world = world;
      options.token = token_;
      options.heartbeat_interval_s = heartbeat_interval_s_;
      options.heartbeat_timeout_s = heartbeat_timeout_s_;
      coordinator_.emplace(options);
    }
    nlohmann::json job = TrainJob();
    job["token"] = token_;
    job["coordinator"] = {{"host", "127.0.0.1"}, {"port", coordinator_->port()}};
    job["rank"] = rank;
    job["world"] = world;
    job["host"] = "host-" + std::to_string(rank);
    return job;
  }

  TestFolder folder_;
  double heartbeat_interval_s_ = 12;
  double heartbeat_timeout_s_ = 30;
  const std::string token_ = NewToken();
  std::optional<rendezvous::Coordinator> coordinator_;
};

// The first "error" event.
inline nlohmann::json ErrorOf(TrainerHarness& trainer) {
  while (auto event = trainer.NextEvent()) {
    if ((*event)["event"] == "error") return *event;
  }
  ADD_FAILURE() << "no error event";
  return {{"message", ""}, {"code", ""}, {"layer", ""}, {"iteration", 0}};
}

}  // namespace hearth::trainer
