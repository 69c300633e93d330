#include "hearth/caffe/net/net_layout.h"

#include <numeric>
#include <vector>

namespace hearth::caffe {
namespace {

// Disjoint sets of blobs that must have the same layout.
class Groups {
 public:
  explicit Groups(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }

  // Halves the path to the root, so that later searches are short.
  int Find(int id) {
    while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
    return id;
  }
  void Join(int a, int b) { parent_[Find(a)] = Find(b); }

 private:
  std::vector<int> parent_;
};

}  // namespace

void PlanLayouts(NetGraph& graph) {
  const size_t count = graph.blobs.size();
  Groups groups(count);
  std::vector<bool> refused(count), faster(count), read(count);
  for (const NetLayer& layer : graph.layers) {
    const ChannelsLast takes = layer.traits.channels_last;
    int first = -1;
    for (const std::vector<int>* ids : {&layer.bottom_ids, &layer.top_ids}) {
      for (const int id : *ids) {
        if (ids == &layer.bottom_ids) read[id] = true;
        if (takes == ChannelsLast::kNo) refused[id] = true;
        if (takes == ChannelsLast::kAny) faster[id] = true;
        if (takes == ChannelsLast::kSame && first >= 0) groups.Join(first, id);
        first = id;
      }
    }
  }
  // The values of an output must be in Caffe's order. An output may be in `read`, because an
  // in-place layer reads its own top.
  for (const std::string& name : graph.outputs) refused[graph.blob_ids.at(name)] = true;
  // If one blob of a group cannot be stored with channels last, the whole group stays row-major,
  // because the layers between its blobs require one layout. The group also stays row-major if
  // channels last makes no layer faster.
  std::vector<bool> group_refused(count), group_faster(count);
  for (size_t i = 0; i < count; ++i) {
    const int group = groups.Find(static_cast<int>(i));
    if (refused[i] || !read[i] || graph.blobs[i]->num_axes() != 4) group_refused[group] = true;
    if (faster[i]) group_faster[group] = true;
  }
  for (size_t i = 0; i < count; ++i) {
    const int group = groups.Find(static_cast<int>(i));
    if (group_faster[group] && !group_refused[group]) {
      graph.blobs[i]->set_layout(Layout::kChannelsLast);
    }
  }
}

}  // namespace hearth::caffe
