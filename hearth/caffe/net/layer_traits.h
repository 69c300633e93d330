#pragma once

#include <algorithm>
#include <optional>
#include <vector>

namespace hearth::caffe {

// Allowed numbers of bottoms and tops, which the net checks before SetUp. `max` applies only if it
// is larger than `min`; otherwise exactly `min` are required. kNoLimit allows any number.
struct Arity {
  static constexpr int kNoLimit = 1 << 20;
  int min_bottoms = 1, max_bottoms = 1;
  int min_tops = 1, max_tops = 1;
  bool equal_bottoms_and_tops = false;
};

// Which four-axis bottoms and tops of a layer may use Layout::kChannelsLast. kNo: none. kSame:
// either all or none. kAny: each one independently, and the layer is faster with it.
enum class ChannelsLast { kNo, kSame, kAny };

// Properties of a layer that the net and the solver use. They depend only on its LayerParameter.
struct LayerTraits {
  Arity arity = {};
  bool is_loss = false;          // the layer's first top has the default loss_weight 1
  bool allows_in_place = false;  // a top may be the same blob as a bottom
  bool automatic_tops = false;   // the net adds tops that are missing in the prototxt
  bool is_net_input = false;     // the layer's tops are the net's inputs
  // Bottoms that get no gradient even with force_backward, such as labels.
  std::vector<int> never_forced = {};
  ChannelsLast channels_last = ChannelsLast::kNo;

  // True if the layer, like ReLU, passes the gradient of its top on where its bottom is positive.
  // The rest of its bottom's gradient is zero.
  bool gated_by_sign = false;
  // True if the layer, like max pooling, copies some values of its bottom to its top, and sends the
  // gradient back to these values only. The top then shows which of these values are positive, so
  // the layer can apply the gate of a ReLU before it; see MoveReluGates().
  bool can_gate_bottom = false;

  // The layer's parameters are running statistics, which Forward updates and gradients do not
  // change.
  bool keeps_statistics = false;
  // Forward and Backward are user code, which may write parameters and take any time.
  bool runs_user_code = false;
  // For a layer that multiplies rows of its bottom by a matrix: the bottom axis at which a row
  // starts.
  std::optional<int> matrix_axis = {};

  bool AllowsForceBackward(int bottom) const {
    return std::find(never_forced.begin(), never_forced.end(), bottom) == never_forced.end();
  }
};

}  // namespace hearth::caffe
