#include <algorithm>
#include <array>

#include "hearth/collective/algorithms/algorithms.h"

namespace hearth::collective {
namespace {

// Upper limit of log2(world), because an int is below 2^31.
constexpr int kMaxSteps = 31;

int PowerOfTwoUpTo(int world) {
  int power = 1;
  while (power * 2 <= world) power *= 2;
  return power;
}

class HalvingDoubling {
 public:
  HalvingDoubling(const Exchange& exchange, Buffer data, Op op, Deadline deadline)
      : exchange_(exchange),
        data_(data),
        deadline_(deadline),
        self_(exchange.transport.self()),
        power_(PowerOfTwoUpTo(exchange.transport.size())) {
    exchange_.plan.arithmetic = {data.type, op};
  }

  // Rabenseifner's algorithm ("Optimization of Collective Reduction Operations", 2004). At distance
  // d, a rank keeps the lower half of its range if bit d of its number is 0, else the upper half.
  // It sends the other half to the rank whose number differs in that bit, and adds the half that it
  // receives from that rank. After log2(p) steps, each rank has the sum of n / p elements; the same
  // steps in reverse collect all sums. A rank sends as much as in the ring, 2 n (p - 1) / p
  // elements, in 2 log2(p) steps.
  void Run() {
    const int extra = exchange_.transport.size() - power_;
    if (self_ >= power_) {
      Step({.send_to = self_ - power_, .sent = All()});
      Step({.receive_from = self_ - power_, .received = All()});
      return;
    }
    const int partner = self_ < extra ? self_ + power_ : -1;
    if (partner >= 0) Step({.receive_from = partner, .received = All(), .combine = true});
    Halve();
    Double();
    if (partner >= 0) Step({.send_to = partner, .sent = All()});
  }

 private:
  struct Messages {
    int send_to = -1;
    Range sent = {};
    int receive_from = -1;
    Range received = {};
    bool combine = false;
  };

  Range All() const { return {0, data_.count}; }

  // Each step completes before the next one starts, so that the order of the additions never
  // depends on timing.
  void Step(const Messages& messages) {
    Plan& plan = exchange_.plan;
    plan.Clear();
    if (messages.send_to >= 0) {
      const Buffer out = data_.Slice(messages.sent);
      plan.sends.push_back({messages.send_to, out.data, out.bytes()});
    }
    if (messages.receive_from >= 0) {
      const Buffer in = data_.Slice(messages.received);
      plan.receives.push_back({messages.receive_from, in.data, in.bytes(), messages.combine});
    }
    exchange_.transport.Run(plan, deadline_);
  }

  void Halve() {
    Range mine = All();
    for (int distance = power_ / 2; distance >= 1; distance /= 2) {
      const size_t middle = mine.begin + mine.size() / 2;
      const bool lower = (self_ & distance) == 0;
      const Range kept = lower ? Range{mine.begin, middle} : Range{middle, mine.end};
      const Range given = lower ? Range{middle, mine.end} : Range{mine.begin, middle};
      const int peer = self_ ^ distance;
      Step({peer, given, peer, kept, true});
      given_[steps_++] = given;
      mine = kept;
    }
    owned_ = mine;
  }

  void Double() {
    for (int distance = 1; distance < power_; distance *= 2) {
      const Range missing = given_[--steps_];
      const int peer = self_ ^ distance;
      Step({peer, owned_, peer, missing, false});
      owned_ = {std::min(owned_.begin, missing.begin), std::max(owned_.end, missing.end)};
    }
  }

  const Exchange& exchange_;
  const Buffer data_;
  const Deadline deadline_;
  const int self_;
  const int power_;
  std::array<Range, kMaxSteps> given_;
  int steps_ = 0;
  Range owned_;
};

}  // namespace

void HalvingDoublingAllReduce(const Exchange& exchange, Buffer data, Op op, Deadline deadline) {
  HalvingDoubling(exchange, data, op, deadline).Run();
}

}  // namespace hearth::collective
