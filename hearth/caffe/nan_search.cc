#include "hearth/caffe/nan_search.h"

#include <algorithm>
#include <cmath>

#include "hearth/base/error.h"

namespace hearth::caffe {
namespace {

bool IsFinite(Blob& blob) {
  const float* values = blob.data_ptr();
  return std::all_of(values, values + blob.count(), [](float v) { return std::isfinite(v); });
}

}  // namespace

std::string FirstNonFinite(Net& net) {
  for (const NetLayer& layer : net.layers()) {
    const std::string name =
        fmt::format("layer '{}' ({})", layer.layer->name(), layer.layer->type());
    for (size_t i = 0; i < layer.layer->blobs().size(); ++i) {
      if (IsFinite(*layer.layer->blobs()[i])) continue;
      return fmt::format("{} has it first, in parameter {}, since the last update", name, i);
    }
    for (size_t i = 0; i < layer.top.size(); ++i) {
      if (IsFinite(*layer.top[i])) continue;
      const std::string& top = net.blob_names()[static_cast<size_t>(layer.top_ids[i])];
      return layer.bottom.empty()
                 ? fmt::format("{} delivers it, in top '{}'", name, top)
                 : fmt::format("{} is the first to produce it, in top '{}'", name, top);
    }
  }
  return "no layer holds it any more";
}

}  // namespace hearth::caffe
