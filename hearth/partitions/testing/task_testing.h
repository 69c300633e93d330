// What tests of a cluster's feed share: a feed task at the other end of its rings.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "hearth/partitions/task_link.h"
#include "hearth/ring/ring_reader.h"
#include "hearth/ring/ring_writer.h"

namespace hearth::partitions {

// Records the messages that it is given; any thread.
class Told {
 public:
  Tell tell() {
    return [this](const nlohmann::json& message) {
      const std::lock_guard lock(mutex_);
      messages_.push_back(message);
    };
  }
  // All messages, of that event or operation where one is named.
  std::vector<nlohmann::json> all(const std::string& name = "") const {
    const std::lock_guard lock(mutex_);
    std::vector<nlohmann::json> found;
    for (const auto& message : messages_) {
      if (name.empty() || message.value("event", message.value("op", "")) == name) {
        found.push_back(message);
      }
    }
    return found;
  }
  nlohmann::json last() const { return all().empty() ? nlohmann::json() : all().back(); }

 private:
  mutable std::mutex mutex_;
  std::vector<nlohmann::json> messages_;
};

// A feed task: writes rows, reads results and is told things. Its node's end is `link`.
struct TestTask {
  TestTask() : TestTask(ring::CreateRing(1 << 20), ring::CreateRing(1 << 20)) {}

  Told told;
  std::unique_ptr<ring::RingWriter> rows;
  std::unique_ptr<ring::RingReader> results;
  std::shared_ptr<TaskLink> link;

 private:
  TestTask(ring::RingEnds rows_ring, ring::RingEnds results_ring)
      : rows(std::make_unique<ring::RingWriter>(std::move(rows_ring.writer))),
        results(std::make_unique<ring::RingReader>(std::move(results_ring.reader))),
        link(std::make_shared<TaskLink>(std::move(rows_ring.reader), std::move(results_ring.writer),
                                        false, told.tell())) {}
};

// Leaves no room for a result, nor for the mark after the last one.
inline void FillResults(TestTask& task) {
  try {
    while (task.link->results.WriteFlush(Deadline::After(0))) continue;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
  }
}

// What a task announces about a partition; `more` overrides it.
inline nlohmann::json Announced(int index, const nlohmann::json& more = nlohmann::json::object()) {
  nlohmann::json message = {{"op", "partition"}, {"feed", "f"},     {"index", index},
                            {"mode", "train"},   {"keep", false},   {"fenced", false},
                            {"format", "arrow"}, {"batched", true}, {"queue", "input"}};
  message.update(more);
  return message;
}

}  // namespace hearth::partitions
