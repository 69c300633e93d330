#include "hearth/caffe/net/net_splits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_error.h"
#include "hearth/caffe/proto/nearest.h"

namespace hearth::caffe {
namespace {

// One version of a blob's value. An in-place layer creates another version under the same name.
struct Value {
  int consumers = 0;
  int next_split = 0;  // index of the split top for the next consumer
  float loss_weight = 0;
};

// Inserts Split layers. Layers overwrite the diffs of their bottoms, so if several layers read a
// value, each one reads a copy from a Split layer, whose Backward adds the gradients. The layers
// get the names of Caffe's InsertSplits, because weights files and logs contain these names. A loss
// weight counts as a consumer and uses the first copy.
class SplitInserter {
 public:
  explicit SplitInserter(const NetParameter& param) : param_(param) { CountConsumers(); }

  NetParameter Run() {
    NetParameter result = param_;
    result.clear_layer();
    for (int i = 0; i < param_.layer_size(); ++i) AddLayer(i, &result);
    return result;
  }

 private:
  using TopPosition = std::pair<int, int>;  // indices of a layer and of its top

  void CountConsumers();
  void AddLayer(int index, NetParameter* result);
  void AddSplit(int index, int top, const Value& value, NetParameter* result);
  std::string SplitName(const TopPosition& position) const {
    const LayerParameter& layer = param_.layer(position.first);
    return fmt::format("{}_{}_{}_split", layer.top(position.second), layer.name(), position.second);
  }

  const NetParameter& param_;
  std::map<TopPosition, Value> values_;
  std::map<TopPosition, TopPosition> source_;  // maps (layer, bottom) to the top that it reads
};

void SplitInserter::CountConsumers() {
  std::map<std::string, TopPosition> latest;
  for (int i = 0; i < param_.layer_size(); ++i) {
    const LayerParameter& layer = param_.layer(i);
    for (int j = 0; j < layer.bottom_size(); ++j) {
      // A bottom refers to the latest value of this name, since in-place layers create new ones.
      const auto found = latest.find(layer.bottom(j));
      if (found == latest.end()) {
        std::vector<std::string> known;
        for (const auto& [name, position] : latest) known.push_back(name);
        RequireInLayer(layer.name(), false, ErrorCode::kInvalidArgument,
                       "layer '{}' ({}): no earlier layer has the top '{}' for bottom {}{}",
                       layer.name(), layer.type(), layer.bottom(j), j,
                       DidYouMean(layer.bottom(j), known));
      }
      source_[{i, j}] = found->second;
      ++values_[found->second].consumers;
    }
    for (int j = 0; j < layer.top_size(); ++j) latest[layer.top(j)] = {i, j};
    for (int j = 0; j < std::min(layer.loss_weight_size(), layer.top_size()); ++j) {
      Value& value = values_[{i, j}];
      value.loss_weight = layer.loss_weight(j);
      if (value.loss_weight != 0) ++value.consumers;
    }
  }
}

void SplitInserter::AddLayer(int index, NetParameter* result) {
  LayerParameter* layer = result->add_layer();
  *layer = param_.layer(index);
  for (int j = 0; j < layer->bottom_size(); ++j) {
    const TopPosition position = source_.at({index, j});
    Value& value = values_.at(position);
    if (value.consumers > 1) {
      layer->set_bottom(j, fmt::format("{}_{}", SplitName(position), value.next_split++));
    }
  }
  // AddSplit, in the second loop, invalidates `layer`.
  bool moves_loss_weight = false;
  for (int j = 0; j < layer->top_size(); ++j) {
    const Value& value = values_[{index, j}];
    moves_loss_weight |= value.consumers > 1 && value.loss_weight != 0;
  }
  if (moves_loss_weight) layer->clear_loss_weight();
  for (int j = 0; j < param_.layer(index).top_size(); ++j) {
    Value& value = values_[{index, j}];
    if (value.consumers <= 1) continue;
    AddSplit(index, j, value, result);
    if (value.loss_weight != 0) value.next_split = 1;  // the loss uses split top 0
  }
}

void SplitInserter::AddSplit(int index, int top, const Value& value, NetParameter* result) {
  const std::string name = SplitName({index, top});
  LayerParameter* split = result->add_layer();
  split->set_name(name);
  split->set_type("Split");
  split->add_bottom(param_.layer(index).top(top));
  for (int k = 0; k < value.consumers; ++k) {
    split->add_top(fmt::format("{}_{}", name, k));
    if (value.loss_weight != 0) split->add_loss_weight(k == 0 ? value.loss_weight : 0);
  }
}

}  // namespace

NetParameter InsertSplits(const NetParameter& param) { return SplitInserter(param).Run(); }

}  // namespace hearth::caffe
