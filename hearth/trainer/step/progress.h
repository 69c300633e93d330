#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>

namespace hearth::trainer {

// Figures of a running training, for its driver.
struct ProgressUpdate {
  int64_t iteration = 0;
  int64_t max_iter = 0;
  double loss = 0;
  double lr = 0;
  double images_per_s = 0;  // rows of all ranks, over the last few seconds
  int64_t effective_batch = 0;
  double eta_s = 0;

  nlohmann::json ToJson() const;
};

// Computes progress figures (rate, time left) from finished iterations. Used by one thread.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  Progress(int64_t first_iter, int64_t max_iter, int64_t effective_batch, Clock::time_point start);

  // `rows` is the number of rows of all ranks in this iteration. Returns an update at most five
  // times a second, and always for the last iteration.
  std::optional<ProgressUpdate> OnIteration(int64_t iteration, double loss, double lr, double rows,
                                            Clock::time_point now);

 private:
  // Iterations and rows at a point in time.
  struct Mark {
    Clock::time_point at;
    int64_t iteration;
    double rows;  // since the start
  };

  int64_t max_iter_;
  int64_t effective_batch_;
  double rows_ = 0;
  Clock::time_point last_update_;
  bool updated_ = false;
  std::deque<Mark> window_;
};

}  // namespace hearth::trainer
