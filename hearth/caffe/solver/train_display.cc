#include "hearth/caffe/solver/train_display.h"

#include <numeric>
#include <vector>

#include "hearth/base/log.h"
#include "hearth/caffe/solver/net_outputs.h"

namespace hearth::caffe {

void TrainDisplay::Start(int iteration) {
  last_time_ = Clock::now();
  last_iteration_ = iteration;
}

// Computes the mean of the last average_loss losses, or of all losses if there are fewer.
void TrainDisplay::AddLoss(float loss) {
  losses_.push_back(loss);
  if (losses_.size() > static_cast<size_t>(param_.average_loss())) losses_.pop_front();
  smoothed_loss_ = static_cast<float>(std::accumulate(losses_.begin(), losses_.end(), 0.0) /
                                      static_cast<double>(losses_.size()));
}

bool TrainDisplay::IsDue(int iteration) const {
  return param_.display() > 0 && iteration % param_.display() == 0;
}

void TrainDisplay::Log(int iteration, float rate, Net& net) {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - last_time_).count();
  const int done = iteration - last_iteration_;
  log::Info("Iteration {} ({:g} iter/s, {:g}s/{} iters), loss = {:g}", iteration,
            seconds > 0 ? done / seconds : 0.0, seconds, param_.display(), smoothed_loss_);
  last_time_ = now;
  last_iteration_ = iteration;
  std::vector<double> values;
  AddOutputs(net, 1, &values);
  LogOutputs("Train", net, values);
  log::Info("Iteration {}, lr = {:g}", iteration, rate);
}

}  // namespace hearth::caffe
