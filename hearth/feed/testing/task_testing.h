// Test helpers for a cluster's feed: a feed task at the other end of its rings.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "hearth/feed/task_link.h"
#include "hearth/ring/ring_reader.h"
#include "hearth/ring/ring_writer.h"

namespace hearth::feed {

// Records the messages that are sent to it; thread-safe.
class RecordedMessages {
 public:
  Send send() {
    return [this](const nlohmann::json& message) {
      const std::lock_guard lock(mutex_);
      messages_.push_back(message);
    };
  }
  // All messages, or only those whose event or operation is `name`.
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

// A feed task: writes rows, reads results and receives messages. The node's end is `link`.
struct TestTask {
  TestTask() : TestTask(ring::CreateRing(1 << 20), ring::CreateRing(1 << 20)) {}

  RecordedMessages received;
  std::unique_ptr<ring::RingWriter> rows;
  std::unique_ptr<ring::RingReader> results;
  std::shared_ptr<TaskLink> link;

 private:
  TestTask(ring::RingEnds rows_ring, ring::RingEnds results_ring)
      : rows(std::make_unique<ring::RingWriter>(std::move(rows_ring.writer))),
        results(std::make_unique<ring::RingReader>(std::move(results_ring.reader))),
        link(std::make_shared<TaskLink>(std::move(rows_ring.reader), std::move(results_ring.writer),
                                        false, received.send())) {}
};

// Fills the ring of results, so that neither a result nor a mark fits.
inline void FillResults(TestTask& task) {
  try {
    while (task.link->results.WriteFlush(Deadline::After(0))) continue;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
  }
}

// A task's announcement of a partition; `more` overrides fields.
inline nlohmann::json Announced(int index, const nlohmann::json& more = nlohmann::json::object()) {
  nlohmann::json message = {{"op", "partition"}, {"feed", "f"},     {"index", index},
                            {"mode", "train"},   {"keep", false},   {"fenced", false},
                            {"format", "arrow"}, {"batched", true}, {"queue", "input"}};
  message.update(more);
  return message;
}

}  // namespace hearth::feed
