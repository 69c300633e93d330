#include "hearth/caffe/net/join_normalization.h"

#include <algorithm>

namespace hearth::caffe {
namespace {

bool Has(const std::vector<int>& ids, int blob) {
  return std::find(ids.begin(), ids.end(), blob) != ids.end();
}

// The only layer from position `first` on that reads the blob before a layer writes it again; null
// if there are several.
NetLayer* OnlyReader(NetGraph& graph, size_t first, int blob) {
  NetLayer* reader = nullptr;
  for (size_t i = first; i < graph.layers.size(); ++i) {
    NetLayer& layer = graph.layers[i];
    if (!Has(layer.bottom_ids, blob) && !Has(layer.top_ids, blob)) continue;
    if (reader != nullptr) return nullptr;
    reader = &layer;
    // The layer runs in place, so later layers read its result.
    if (Has(layer.top_ids, blob)) return reader;
  }
  return reader;
}

// Returns true if the layer's Backward runs and its top is not a loss. Only if this holds for both
// layers may the diff of the blob between them be left unwritten.
bool PassesItsGradient(const NetLayer& layer) {
  return layer.need_backward && layer.bottom.size() == 1 && layer.bottom_need_backward[0] &&
         layer.loss_weights[0] == 0;
}

}  // namespace

void JoinNormalizations(NetGraph& graph) {
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    NetLayer& layer = graph.layers[i];
    auto* normalization = dynamic_cast<Normalization*>(layer.layer.get());
    if (normalization == nullptr || !normalization->has_minibatch_statistics()) continue;
    NetLayer* reader = OnlyReader(graph, i + 1, layer.top_ids[0]);
    if (reader == nullptr || !PassesItsGradient(layer) || !PassesItsGradient(*reader)) continue;
    auto* scale = dynamic_cast<ScalesNormalized*>(reader->layer.get());
    if (scale == nullptr || !scale->scales_channels(normalization->channels())) continue;
    scale->set_normalization(normalization);
  }
}

}  // namespace hearth::caffe
