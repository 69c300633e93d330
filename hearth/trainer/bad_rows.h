// Counts rows that could not be used, and ends the run when there are more than allowed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

namespace hearth::trainer {

// Thread-safe: the decoding threads of every device report here.
class BadRows {
 public:
  using SendEvent = std::function<void(const nlohmann::json&)>;

  // `limit` of -1 allows any number.
  BadRows(int64_t limit, SendEvent send) : limit_(limit), send_(std::move(send)) {}

  // Logs the first ten rows one by one and sends a "bad_row" event at most once a second. Throws
  // kDataLoss, naming the row, when it is one too many.
  void Report(const std::string& row_id, const std::string& reason);

  int64_t count() const;

 private:
  const int64_t limit_;
  const SendEvent send_;
  mutable std::mutex mutex_;
  int64_t count_ = 0;
  std::chrono::steady_clock::time_point last_event_{};
};

}  // namespace hearth::trainer
