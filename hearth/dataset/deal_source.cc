#include "hearth/dataset/deal_source.h"

#include <deque>
#include <mutex>
#include <utility>

namespace hearth::dataset {
namespace {

// The dealer, shared by the devices' sources.
class Table {
 public:
  Table(std::shared_ptr<MinibatchSource> source, int devices)
      : source_(std::move(source)), hands_(devices) {}

  int64_t Take(size_t device, int64_t epoch, int64_t max_rows, Minibatch* out) {
    // Held while the source waits: the others need the same rows, and their order must not depend
    // on who comes first.
    const std::lock_guard lock(mutex_);
    out->Clear();
    std::deque<Minibatch>& hand = hands_[device];
    if (epoch > epoch_) StartEpoch(epoch);
    while (hand.empty() && epoch == epoch_ && !over_) DealOne(max_rows);
    if (hand.empty() || epoch < epoch_) return 0;
    *out = std::move(hand.front());
    hand.pop_front();
    return out->size();
  }

 private:
  void StartEpoch(int64_t epoch) {
    for (; epoch_ < epoch; ++epoch_) source_->NextEpoch();
    for (auto& hand : hands_) hand.clear();
    next_device_ = 0;
    over_ = false;
  }

  void DealOne(int64_t max_rows) {
    Minibatch minibatch;
    over_ = source_->Next(max_rows, &minibatch) == 0;
    if (over_) return;
    hands_[next_device_].push_back(std::move(minibatch));
    next_device_ = (next_device_ + 1) % hands_.size();
  }

  std::mutex mutex_;
  std::shared_ptr<MinibatchSource> source_;
  std::vector<std::deque<Minibatch>> hands_;  // dealt, not yet taken
  size_t next_device_ = 0;
  int64_t epoch_ = 0;
  bool over_ = false;
};

class DeviceSource : public MinibatchSource {
 public:
  DeviceSource(std::shared_ptr<Table> table, size_t device)
      : table_(std::move(table)), device_(device) {}

  int64_t Next(int64_t max_rows, Minibatch* out) override {
    return table_->Take(device_, epoch_, max_rows, out);
  }
  void NextEpoch() override { ++epoch_; }
  int64_t epoch() const override { return epoch_; }

 private:
  std::shared_ptr<Table> table_;
  size_t device_;
  int64_t epoch_ = 0;
};

}  // namespace

std::vector<std::shared_ptr<MinibatchSource>> DealSource(std::shared_ptr<MinibatchSource> source,
                                                         int devices) {
  auto table = std::make_shared<Table>(std::move(source), devices);
  std::vector<std::shared_ptr<MinibatchSource>> sources;
  for (int device = 0; device < devices; ++device) {
    sources.push_back(std::make_shared<DeviceSource>(table, device));
  }
  return sources;
}

}  // namespace hearth::dataset
