#include "hearth/caffe/net/net_backward.h"

#include <algorithm>
#include <set>
#include <vector>

namespace hearth::caffe {
namespace {

// Iterates from the data to the losses. A layer needs Backward if it has learned parameters, or if
// one of its bottoms comes from a layer that needs Backward.
void MarkLearning(const NetParameter& param, NetGraph* graph) {
  std::vector<bool> blob_needs(graph->blobs.size(), false);
  for (size_t i = 0; i < graph->layers.size(); ++i) {
    NetLayer& layer = graph->layers[i];
    const LayerParameter& given = param.layer(static_cast<int>(i));
    for (size_t j = 0; j < layer.bottom_ids.size(); ++j) {
      const bool needs = blob_needs[layer.bottom_ids[j]];
      layer.need_backward = layer.need_backward || needs;
      // propagate_down in the prototxt takes precedence over `needs`.
      layer.bottom_need_backward.push_back(
          given.propagate_down().empty() ? needs : given.propagate_down(static_cast<int>(j)));
    }
    for (size_t j = 0; j < layer.layer->blobs().size(); ++j) {
      const bool learns =
          j >= given.param().size() || given.param(static_cast<int>(j)).lr_mult() != 0;
      layer.layer->set_param_propagate_down(j, learns);
      layer.need_backward = layer.need_backward || learns;
    }
    for (int id : layer.top_ids) blob_needs[id] = blob_needs[id] || layer.need_backward;
  }
}

// Iterates from the losses to the data. A layer does not run Backward if no loss depends on it, or
// if propagate_down cuts every path from the layer to a loss.
void PruneBelowLosses(NetGraph* graph) {
  std::set<int> under_loss, skipped;
  for (auto layer = graph->layers.rbegin(); layer != graph->layers.rend(); ++layer) {
    // `skipped` contains the blobs whose readers do not compute a gradient for them.
    bool contributes = false, all_skipped = true;
    for (size_t j = 0; j < layer->top_ids.size(); ++j) {
      contributes |= layer->loss_weights[j] != 0 || under_loss.count(layer->top_ids[j]) > 0;
      all_skipped &= skipped.count(layer->top_ids[j]) > 0;
    }
    const bool stops_here = (layer->need_backward && all_skipped) || !contributes;
    if (stops_here) layer->need_backward = false;
    for (size_t j = 0; j < layer->bottom_ids.size(); ++j) {
      if (stops_here) layer->bottom_need_backward[j] = false;
      if (contributes) under_loss.insert(layer->bottom_ids[j]);
      if (!layer->bottom_need_backward[j]) skipped.insert(layer->bottom_ids[j]);
    }
  }
}

void ForceBackward(NetGraph* graph) {
  for (NetLayer& layer : graph->layers) {
    layer.need_backward = true;
    for (size_t j = 0; j < layer.bottom.size(); ++j) {
      layer.bottom_need_backward[j] =
          layer.bottom_need_backward[j] || layer.traits.AllowsForceBackward(static_cast<int>(j));
    }
    for (size_t j = 0; j < layer.layer->blobs().size(); ++j) {
      layer.layer->set_param_propagate_down(j, true);
    }
  }
}

}  // namespace

void PlanBackward(const NetParameter& param, NetGraph* graph) {
  MarkLearning(param, graph);
  PruneBelowLosses(graph);
  if (graph->force_backward) ForceBackward(graph);
}

}  // namespace hearth::caffe
