#include <algorithm>

#include "hearth/collective/algorithms/algorithms.h"

namespace hearth::collective {
namespace {

// All buffers of a window fit in the caches.
constexpr size_t kWindow = 512 << 10;  // elements
constexpr size_t kHalf = 2;            // bytes

// One window: every rank sends each part to the rank that sums the part, and that rank sends the
// sum to all ranks.
class NarrowWindow {
 public:
  NarrowWindow(const Exchange& exchange, Buffer data, DataType wire)
      : exchange_(exchange),
        data_(data),
        wire_(wire),
        world_(exchange.transport.size()),
        self_(exchange.transport.self()),
        own_(Part(data.count, world_, self_)) {
    // The scratch memory holds the values to send, then the values of this rank's part that the
    // peers have sent.
    const size_t others = own_.size() * static_cast<size_t>(world_);
    exchange_.scratch.resize(std::max(exchange_.scratch.size(), (data.count + others) * kHalf));
  }

  // Sends each rank its part, and sums this rank's own part. The sum starts with this rank's
  // values, which have not been rounded. No other rank sums the same part, so all ranks get the
  // same bits.
  void Scatter(Deadline deadline) {
    Narrow(wire_, Sent(0), Floats(0), data_.count);
    Plan& plan = exchange_.plan;
    plan.Clear();
    for (int distance = 1; distance < world_; ++distance) {
      const int to = (self_ + distance) % world_;
      const int from = (self_ - distance + world_) % world_;
      const Range part = Part(data_.count, world_, to);
      plan.sends.push_back({to, Sent(part.begin), part.size() * kHalf});
      plan.receives.push_back({from, Came(from), own_.size() * kHalf});
    }
    exchange_.transport.Run(plan, deadline);
    for (int rank = 0; rank < world_; ++rank) {
      if (rank != self_) AddWidened(wire_, Floats(own_.begin), Came(rank), own_.size());
    }
  }

  void Gather(Deadline deadline) {
    // The owner rounds its own copy of the sum too, so that all ranks get the same bits.
    Narrow(wire_, Sent(own_.begin), Floats(own_.begin), own_.size());
    Plan& plan = exchange_.plan;
    plan.Clear();
    for (int distance = 1; distance < world_; ++distance) {
      const int to = (self_ + distance) % world_;
      const int from = (self_ - distance + world_) % world_;
      const Range part = Part(data_.count, world_, from);
      plan.sends.push_back({to, Sent(own_.begin), own_.size() * kHalf});
      plan.receives.push_back({from, Sent(part.begin), part.size() * kHalf});
    }
    exchange_.transport.Run(plan, deadline);
    Widen(wire_, Floats(0), Sent(0), data_.count);
  }

 private:
  std::byte* Sent(size_t element) const { return exchange_.scratch.data() + element * kHalf; }
  std::byte* Came(int rank) const {
    return Sent(data_.count + static_cast<size_t>(rank) * own_.size());
  }
  std::byte* Floats(size_t element) const { return data_.data + element * sizeof(float); }

  const Exchange& exchange_;
  const Buffer data_;
  const DataType wire_;
  const int world_;
  const int self_;
  const Range own_;
};

}  // namespace

void NarrowAllReduce(const Exchange& exchange, Buffer data, Wire wire, Deadline deadline) {
  const DataType type = wire == Wire::kFloat16 ? DataType::kFloat16 : DataType::kBfloat16;
  size_t at = 0;
  do {  // runs once for 0 elements too, so that ranks in different operations are detected
    const size_t end = std::min(data.count, at + kWindow);
    NarrowWindow window(exchange, data.Slice({at, end}), type);
    window.Scatter(deadline);
    window.Gather(deadline);
    at = end;
  } while (at < data.count);
}

}  // namespace hearth::collective
