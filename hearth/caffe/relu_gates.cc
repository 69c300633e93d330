#include "hearth/caffe/relu_gates.h"

#include <algorithm>

namespace hearth::caffe {
namespace {

// The layers that touch a blob, in order.
std::vector<NetLayer*> UsersOf(NetGraph& graph, int blob) {
  std::vector<NetLayer*> users;
  for (NetLayer& layer : graph.layers) {
    const auto has = [blob](const std::vector<int>& ids) {
      return std::find(ids.begin(), ids.end(), blob) != ids.end();
    };
    if (has(layer.top_ids) || has(layer.bottom_ids)) users.push_back(&layer);
  }
  return users;
}

bool PassesGradient(const NetLayer& layer) {
  return layer.need_backward && layer.bottom.size() == 1 && layer.top.size() == 1 &&
         layer.bottom_need_backward[0] && layer.loss_weights[0] == 0;
}

// Whether other blobs lie in the same memory, as those of Reshape do.
bool SharesMemory(const NetGraph& graph, int blob) {
  const void* data = graph.blobs[blob]->data_identity();
  const void* diff = graph.blobs[blob]->diff_identity();
  for (size_t i = 0; i < graph.blobs.size(); ++i) {
    if (static_cast<int>(i) == blob) continue;
    const Blob& other = *graph.blobs[i];
    if (data != nullptr && other.data_identity() == data) return true;
    if (diff != nullptr && other.diff_identity() == diff) return true;
  }
  return false;
}

}  // namespace

std::vector<int> MoveReluGates(NetGraph& graph) {
  std::vector<int> freed;
  for (size_t i = 0; i < graph.blobs.size(); ++i) {
    const int blob = static_cast<int>(i);
    const std::vector<NetLayer*> users = UsersOf(graph, blob);
    // Who makes the blob does not read it in Backward either: it is written over in place.
    if (users.size() != 3 || users[0]->top_ids.empty()) continue;
    const NetLayer &relu = *users[1], &pooling = *users[2];
    const bool in_place = relu.bottom_ids == relu.top_ids && users[0]->loss_weights[0] == 0;
    if (!in_place || !PassesGradient(relu) || !PassesGradient(pooling)) continue;
    if (!relu.layer->IsGatedBySign() || !pooling.layer->CanGateBottom()) continue;
    if (SharesMemory(graph, blob)) continue;
    relu.layer->set_gated_by_reader(true);
    pooling.layer->set_gates_bottom(true);
    freed.push_back(blob);
  }
  return freed;
}

}  // namespace hearth::caffe
