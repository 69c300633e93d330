#include "hearth/trainer/step/progress.h"

namespace hearth::trainer {
namespace {

// A progress bar moves smoothly with five updates a second. The rate is a mean over a window,
// because single iterations vary.
constexpr auto kUpdateInterval = std::chrono::milliseconds(200);
constexpr auto kWindow = std::chrono::seconds(5);

double Seconds(Progress::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

nlohmann::json ProgressUpdate::ToJson() const {
  return {{"event", "progress"},
          {"iteration", iteration},
          {"max_iter", max_iter},
          {"loss", loss},
          {"lr", lr},
          {"images_per_s", images_per_s},
          {"effective_batch", effective_batch},
          {"eta_s", eta_s}};
}

Progress::Progress(int64_t first_iter, int64_t max_iter, int64_t effective_batch,
                   Clock::time_point start)
    : max_iter_(max_iter), effective_batch_(effective_batch), last_update_(start) {
  window_.push_back({start, first_iter, 0});
}

std::optional<ProgressUpdate> Progress::OnIteration(int64_t iteration, double loss, double lr,
                                                    double rows, Clock::time_point now) {
  rows_ += rows;
  const bool last = iteration >= max_iter_;
  if (updated_ && !last && now - last_update_ < kUpdateInterval) return std::nullopt;
  updated_ = true;
  last_update_ = now;
  // Marks are stored per update, not per iteration, so that the window stays small. One mark older
  // than the window is kept as the beginning of the window.
  while (window_.size() > 1 && now - window_[1].at >= kWindow) window_.pop_front();
  const Mark& from = window_.front();
  const double elapsed = Seconds(now - from.at);
  ProgressUpdate update{iteration, max_iter_, loss, lr, 0, effective_batch_, 0};
  if (elapsed > 0) {
    update.images_per_s = (rows_ - from.rows) / elapsed;
    const double per_iteration = elapsed / static_cast<double>(iteration - from.iteration);
    update.eta_s = per_iteration * static_cast<double>(max_iter_ - iteration);
  }
  window_.push_back({now, iteration, rows_});
  return update;
}

}  // namespace hearth::trainer
