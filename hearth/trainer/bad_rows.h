// Names and counts rows that could not be used, and ends the run when there are more than allowed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hearth/trainer/job.h"

namespace hearth::trainer {

// Thread-safe: every device of the process reports here.
class BadRows {
 public:
  using SendEvent = std::function<void(const nlohmann::json&)>;

  BadRows(BadRowLimit limit, SendEvent send) : limit_(limit), send_(std::move(send)) {}

  // Logs the first ten rows by name, each once, and sends a "bad_row" event at most once a second.
  void Report(const std::string& row_id, const std::string& reason);
  // Keeps the row's name for Check only: it was reported before a restart.
  void Recall(const std::string& row_id, const std::string& reason);

  // Throws kDataLoss, naming rows, when `bad` of `rows` rows are more than allowed. Both are over
  // one epoch and all ranks. A fraction is checked from 1000 rows on, and at the end. A process
  // that saw no bad rows never throws, so that the error comes from one that can name them.
  void Check(int64_t rows, int64_t bad, bool no_more) const;
  // Throws kDataLoss where none of an epoch's `rows` can be used, with names, as Check does.
  void RefuseAll(int64_t rows) const;

  // Number of reports so far (a row counts again in each epoch), or what SetCount set plus the
  // reports since.
  int64_t count() const;
  // Sets the count over all ranks, reports before a restart included.
  void SetCount(int64_t count);

 private:
  struct Named {
    std::string id, reason;
  };
  bool AddName(const std::string& row_id, const std::string& reason);  // needs mutex_
  std::string NamesAndReason() const;                                  // needs mutex_
  bool IsTooMany(int64_t rows, int64_t bad, bool no_more) const;

  const BadRowLimit limit_;
  const SendEvent send_;
  mutable std::mutex mutex_;
  int64_t count_ = 0;
  std::vector<Named> named_;
  std::chrono::steady_clock::time_point last_event_{};
};

}  // namespace hearth::trainer
