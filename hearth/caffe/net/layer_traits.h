#pragma once

#include <algorithm>
#include <optional>
#include <vector>

namespace hearth::caffe {

// Numbers of bottoms and tops; checked by the net before SetUp. Exact unless `max` is larger;
// kNoLimit for any number.
struct Arity {
  static constexpr int kNoLimit = 1 << 20;
  int min_bottoms = 1, max_bottoms = 1;
  int min_tops = 1, max_tops = 1;
  bool equal_bottoms_and_tops = false;
};

// Which of a layer's four-axis bottoms and tops may be in Layout::kChannelsLast: none; all or none
// of them; each independently, for layers that are also faster with it.
enum class ChannelsLast { kNo, kSame, kAny };

// Properties of a layer for the net that runs it and the solver that trains it. They follow from
// its LayerParameter alone.
struct LayerTraits {
  Arity arity = {};
  bool is_loss = false;          // its first top has loss_weight 1
  bool allows_in_place = false;  // a top may be its bottom
  bool automatic_tops = false;   // the net adds tops that the prototxt leaves out
  bool is_net_input = false;     // its tops are the net's inputs
  // Bottoms without a gradient even with force_backward, such as labels.
  std::vector<int> never_forced = {};
  ChannelsLast channels_last = ChannelsLast::kNo;

  // Passes its top's gradient on where its bottom is positive, and zero otherwise, like ReLU.
  bool gated_by_sign = false;
  // Sends its gradient to bottom values that its top repeats, like max pooling, so that the top
  // shows which of them are positive. The net may let it gate for a ReLU; see MoveReluGates().
  bool can_gate_bottom = false;

  // Its parameters are running statistics, which Forward writes and gradients do not change.
  bool keeps_statistics = false;
  // Forward and Backward are user code: they may write parameters and take any time.
  bool runs_user_code = false;
  // Multiplies the bottom's rows by a matrix: the axis at which the rows begin.
  std::optional<int> matrix_axis = {};

  bool AllowsForceBackward(int bottom) const {
    return std::find(never_forced.begin(), never_forced.end(), bottom) == never_forced.end();
  }
};

}  // namespace hearth::caffe
