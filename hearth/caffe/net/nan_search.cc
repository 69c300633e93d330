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

// Returns true if other values have overwritten the layer's top by now.
void MakeAgain(Net& net, int layer) {
  const std::vector<int>& tops = net.layers()[static_cast<size_t>(layer)].top_ids;
  const auto& gone = net.short_lived();
  const auto is_gone = [&](int id) {
    return std::find(gone.begin(), gone.end(), id) != gone.end();
  };
  if (std::any_of(tops.begin(), tops.end(), is_gone)) net.Forward(layer, layer);
}

}  // namespace

NonFinite FirstNonFinite(Net& net) {
  for (int i = 0; i <= net.last_layer(); ++i) {
    const NetLayer& layer = net.layers()[static_cast<size_t>(i)];
    MakeAgain(net, i);
    const std::string name =
        fmt::format("layer '{}' ({})", layer.layer->name(), layer.layer->type());
    for (size_t k = 0; k < layer.layer->blobs().size(); ++k) {
      if (IsFinite(*layer.layer->blobs()[k])) continue;
      return {fmt::format("{} is the first to have it, in parameter {}, since the last update",
                          name, k),
              layer.layer->name()};
    }
    for (size_t k = 0; k < layer.top.size(); ++k) {
      if (IsFinite(*layer.top[k])) continue;
      const std::string& top = net.blob_names()[static_cast<size_t>(layer.top_ids[k])];
      const char* how = layer.bottom.empty() ? "delivers it" : "is the first to produce it";
      return {fmt::format("{} {}, in top '{}'", name, how, top), layer.layer->name()};
    }
  }
  return {"no layer has it any more", ""};
}

}  // namespace hearth::caffe
