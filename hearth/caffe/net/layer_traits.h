// What a layer is to the net that runs it and to the solver that trains it. Follows from the
// layer's LayerParameter alone.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

namespace hearth::caffe {

// How many bottoms and tops a layer takes; checked by the net before SetUp. Exact counts unless
// `max` is larger; kNoLimit for any number.
struct Arity {
  static constexpr int kNoLimit = 1 << 20;
  int min_bottoms = 1, max_bottoms = 1;
  int min_tops = 1, max_tops = 1;
  bool equal_bottoms_and_tops = false;
};

// Which of a layer's bottoms and tops of four axes may be in Layout::kChannelsLast: none; all or
// none of them; each by itself, for layers that are also faster that way.
enum class ChannelsLast { kNo, kSame, kAny };

struct LayerTraits {
  Arity arity = {};
  bool is_loss = false;          // its first top has loss_weight 1
  bool allows_in_place = false;  // a top may be its bottom
  bool automatic_tops = false;   // the net makes tops that the prototxt leaves out
  bool is_net_input = false;     // its tops are the net's inputs
  // Bottoms without a gradient even with force_backward, as labels are.
  std::vector<int> never_forced = {};
  ChannelsLast channels_last = ChannelsLast::kNo;

  // Passes its top's gradient on where its bottom is above zero, and zero elsewhere, as ReLU does.
  bool gated_by_sign = false;
  // Its gradient goes to bottom values that its top repeats, as in max pooling, so that the top
  // shows which of them are above zero. The net may let it gate for a ReLU; see MoveReluGates().
  bool can_gate_bottom = false;

  // Its parameters are running statistics, which Forward writes and no gradient changes.
  bool keeps_statistics = false;
  // Forward and Backward are the user's code: they may write parameters and take any time.
  bool runs_user_code = false;
  // Multiplies the bottom's rows by a matrix: the axis at which the rows begin.
  std::optional<int> matrix_axis = {};

  bool AllowsForceBackward(int bottom) const {
    return std::find(never_forced.begin(), never_forced.end(), bottom) == never_forced.end();
  }
};

}  // namespace hearth::caffe
