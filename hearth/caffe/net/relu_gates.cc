#include "hearth/caffe/net/relu_gates.h"

#include <unordered_map>

namespace hearth::caffe {
namespace {

// For each blob, the layers that write or read it, in order.
std::vector<std::vector<NetLayer*>> FindUsers(NetGraph& graph) {
  std::vector<std::vector<NetLayer*>> users(graph.blobs.size());
  for (NetLayer& layer : graph.layers) {
    for (const std::vector<int>* ids : {&layer.top_ids, &layer.bottom_ids}) {
      for (const int id : *ids) {
        if (users[id].empty() || users[id].back() != &layer) users[id].push_back(&layer);
      }
    }
  }
  return users;
}

// True for a layer with one bottom and one top whose Backward computes the gradient of its bottom,
// and whose top is not a loss.
bool PassesGradient(const NetLayer& layer) {
  return layer.need_backward && layer.bottom.size() == 1 && layer.top.size() == 1 &&
         layer.bottom_need_backward[0] && layer.loss_weights[0] == 0;
}

// Tells which blobs share memory with another blob, as the tops of Reshape layers do.
class SharedMemory {
 public:
  explicit SharedMemory(const NetGraph& graph) {
    for (const auto& blob : graph.blobs) {
      ++data_[blob->data_identity()];
      ++diff_[blob->diff_identity()];
    }
  }

  bool Has(const Blob& blob) const {
    return IsOfSeveral(data_, blob.data_identity()) || IsOfSeveral(diff_, blob.diff_identity());
  }

 private:
  using Counts = std::unordered_map<const void*, int>;

  static bool IsOfSeveral(const Counts& counts, const void* memory) {
    return memory != nullptr && counts.at(memory) > 1;
  }

  Counts data_, diff_;
};

}  // namespace

std::vector<int> MoveReluGates(NetGraph& graph) {
  std::vector<int> freed;
  const std::vector<std::vector<NetLayer*>> all_users = FindUsers(graph);
  const SharedMemory shared(graph);
  for (size_t i = 0; i < graph.blobs.size(); ++i) {
    const int blob = static_cast<int>(i);
    const std::vector<NetLayer*>& users = all_users[i];
    // The blob's users must be the layer that writes it, the ReLU and the pooling layer. The first
    // of these does not read the blob in Backward, because the ReLU overwrites it in place.
    if (users.size() != 3 || users[0]->top_ids.empty()) continue;
    const NetLayer &relu = *users[1], &pooling = *users[2];
    const bool in_place = relu.bottom_ids == relu.top_ids && users[0]->loss_weights[0] == 0;
    if (!in_place || !PassesGradient(relu) || !PassesGradient(pooling)) continue;
    if (!relu.traits.gated_by_sign || !pooling.traits.can_gate_bottom) continue;
    if (pooling.layer->top_overwritten()) continue;
    if (shared.Has(*graph.blobs[i])) continue;
    relu.layer->set_gated_by_reader(true);
    pooling.layer->set_gates_bottom(true);
    freed.push_back(blob);
  }
  return freed;
}

}  // namespace hearth::caffe
