#pragma once

#include <chrono>
#include <deque>
#include <utility>

#include "hearth/caffe/net/net.h"
#include "hearth/caffe/proto/messages.h"

namespace hearth::caffe {

// The training loss, averaged over iterations, and its lines in Caffe's log format.
class TrainDisplay {
 public:
  // `param` must outlive this object.
  explicit TrainDisplay(const SolverParameter& param) : param_(param) {}

  // Called when training starts or continues at `iteration`. Starts the measurement of speed.
  void Start(int iteration);
  void AddLoss(float loss);
  // Mean over the last average_loss iterations.
  float smoothed_loss() const { return smoothed_loss_; }
  // The losses that the average covers, for snapshots.
  const std::deque<float>& losses() const { return losses_; }
  void set_losses(std::deque<float> losses) { losses_ = std::move(losses); }

  // Returns true every param.display iterations.
  bool IsDue(int iteration) const;
  // Logs speed, loss, outputs and learning rate.
  void Log(int iteration, float rate, Net& net);

 private:
  using Clock = std::chrono::steady_clock;

  const SolverParameter& param_;
  std::deque<float> losses_;
  float smoothed_loss_ = 0;
  Clock::time_point last_time_;
  int last_iteration_ = 0;
};

}  // namespace hearth::caffe
