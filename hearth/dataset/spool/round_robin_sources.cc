#include "hearth/dataset/spool/round_robin_sources.h"

#include <deque>
#include <mutex>
#include <utility>

namespace hearth::dataset {
namespace {

// Reads the source and queues minibatches per device; shared by the devices' sources.
class Distributor {
 public:
  Distributor(std::shared_ptr<MinibatchSource> source, int devices)
      : source_(std::move(source)), queues_(devices) {}

  int64_t Take(size_t device, int64_t epoch, int64_t max_rows, Minibatch* out) {
    // Stays locked while the source waits: the other devices need the same rows, and the order must
    // not depend on which device calls first.
    const std::lock_guard lock(mutex_);
    out->Clear();
    std::deque<Minibatch>& queue = queues_[device];
    if (epoch > epoch_) StartEpoch(epoch);
    while (queue.empty() && epoch == epoch_ && !over_) DistributeOne(max_rows);
    // A device that is still in an earlier epoch gets nothing, because its minibatches were dropped
    // when this epoch began.
    if (queue.empty() || epoch < epoch_) return 0;
    *out = std::move(queue.front());
    queue.pop_front();
    return out->size();
  }

 private:
  void StartEpoch(int64_t epoch) {
    for (; epoch_ < epoch; ++epoch_) source_->NextEpoch();
    for (auto& queue : queues_) queue.clear();
    next_device_ = 0;
    over_ = false;
  }

  void DistributeOne(int64_t max_rows) {
    Minibatch minibatch;
    over_ = source_->Next(max_rows, &minibatch) == 0;
    if (over_) return;
    queues_[next_device_].push_back(std::move(minibatch));
    next_device_ = (next_device_ + 1) % queues_.size();
  }

  std::mutex mutex_;
  std::shared_ptr<MinibatchSource> source_;
  std::vector<std::deque<Minibatch>> queues_;  // distributed, but not yet read
  size_t next_device_ = 0;
  int64_t epoch_ = 0;
  bool over_ = false;
};

class DeviceSource : public MinibatchSource {
 public:
  DeviceSource(std::shared_ptr<Distributor> distributor, size_t device)
      : distributor_(std::move(distributor)), device_(device) {}

  int64_t Next(int64_t max_rows, Minibatch* out) override {
    return distributor_->Take(device_, epoch_, max_rows, out);
  }
  void NextEpoch() override { ++epoch_; }
  int64_t epoch() const override { return epoch_; }

 private:
  std::shared_ptr<Distributor> distributor_;
  size_t device_;
  int64_t epoch_ = 0;
};

}  // namespace

std::vector<std::shared_ptr<MinibatchSource>> RoundRobinSources(
    std::shared_ptr<MinibatchSource> source, int devices) {
  auto distributor = std::make_shared<Distributor>(std::move(source), devices);
  std::vector<std::shared_ptr<MinibatchSource>> sources;
  for (int device = 0; device < devices; ++device) {
    sources.push_back(std::make_shared<DeviceSource>(distributor, device));
  }
  return sources;
}

}  // namespace hearth::dataset
