// Names and counts invalid rows, and ends the run if there are more than allowed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hearth/settings/settings.h"

namespace hearth::trainer {

// The invalid rows of one process. Thread-safe, because all devices of the process report here.
class InvalidRows {
 public:
  using SendEvent = std::function<void(const nlohmann::json&)>;

  InvalidRows(settings::InvalidRowLimit limit, SendEvent send)
      : limit_(limit), send_(std::move(send)) {}

  // Logs the first ten rows by name, each once, and sends an "invalid_row" event at most once per
  // second.
  void Report(const std::string& row_id, const std::string& reason);
  // Records the name of a row that was reported before a restart, for the errors of Check and
  // RejectAllInvalid. Neither logs nor counts it.
  void AddRestoredName(const std::string& row_id, const std::string& reason);

  // Throws kDataLoss, naming rows, if `bad` of `rows` rows are more than allowed. Both are summed
  // over one epoch and all ranks. A fraction is checked from 1000 rows on, and at the end of the
  // epoch. A process without invalid rows never throws, so that the error comes from a process that
  // can name some.
  void Check(int64_t rows, int64_t bad, bool at_end_of_epoch) const;
  // Called if all `rows` rows of an epoch are invalid: throws kDataLoss, naming rows. Like Check,
  // does not throw in a process without invalid rows.
  void RejectAllInvalid(int64_t rows) const;

  // Returns the number of reports so far; a row counts again in each epoch. After SetCount(n),
  // returns n plus the number of later reports.
  int64_t count() const;
  // Sets the count over all ranks, including reports before a restart.
  void SetCount(int64_t count);

 private:
  // An invalid row, and the reason why it is invalid.
  struct Named {
    std::string id, reason;
  };
  bool AddName(const std::string& row_id, const std::string& reason);  // requires mutex_
  std::string NamesAndReason() const;                                  // requires mutex_
  bool IsTooMany(int64_t rows, int64_t bad, bool at_end_of_epoch) const;

  const settings::InvalidRowLimit limit_;
  const SendEvent send_;
  mutable std::mutex mutex_;
  int64_t count_ = 0;
  std::vector<Named> named_;
  std::chrono::steady_clock::time_point last_event_{};
};

}  // namespace hearth::trainer
