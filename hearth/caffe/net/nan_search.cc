#include "hearth/caffe/net/nan_search.h"

#include <algorithm>
#include <cmath>

#include "hearth/base/error.h"

namespace hearth::caffe {
namespace {

bool IsFinite(Blob& blob) {
  const float* values = blob.data_ptr();
  return std::all_of(values, values + blob.count(), [](float v) { return std::isfinite(v); });
}

// Runs the layer again if its tops share memory with later values, which have overwritten them.
void RecomputeTops(Net& net, int layer) {
  const std::vector<int>& tops = net.layers()[static_cast<size_t>(layer)].top_ids;
  const auto& gone = net.short_lived();
  const auto is_gone = [&](int id) {
    return std::find(gone.begin(), gone.end(), id) != gone.end();
  };
  if (std::any_of(tops.begin(), tops.end(), is_gone)) net.Forward(layer, layer);
}

}  // namespace

// Tests the layers in order, parameters before tops. The first non-finite value is the origin,
// because later layers only propagate it.
NonFinite FirstNonFinite(Net& net) {
  for (int i = 0; i <= net.last_layer(); ++i) {
    const NetLayer& layer = net.layers()[static_cast<size_t>(i)];
    RecomputeTops(net, i);
    const std::string name =
        fmt::format("layer '{}' ({})", layer.layer->name(), layer.layer->type());
    for (size_t k = 0; k < layer.layer->blobs().size(); ++k) {
      if (IsFinite(*layer.layer->blobs()[k])) continue;
      return {fmt::format(
                  "{} is the first with a non-finite value, in parameter {}, since the last update",
                  name, k),
              layer.layer->name()};
    }
    for (size_t k = 0; k < layer.top.size(); ++k) {
      if (IsFinite(*layer.top[k])) continue;
      const std::string& top = net.blob_names()[static_cast<size_t>(layer.top_ids[k])];
      const char* how = layer.bottom.empty() ? "delivers a non-finite value"
                                             : "is the first to produce a non-finite value";
      return {fmt::format("{} {}, in top '{}'", name, how, top), layer.layer->name()};
    }
  }
  return {"no layer has a non-finite value now", ""};
}

}  // namespace hearth::caffe
