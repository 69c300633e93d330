#include <map>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/upgrade/upgrade_layer.h"

namespace hearth::caffe {
namespace {

bool IsPadding(const V1LayerParameter& layer) {
  return layer.has_layer() && layer.layer().type() == "padding";
}

// Moves the padding into `layer`, whose only bottom must be the top of `padding`.
void PadIn(const V1LayerParameter& padding, const std::string& name, V1LayerParameter* layer) {
  const std::string& type = layer->layer().type();
  Require((type == "conv" || type == "pool") && layer->bottom_size() == 1,
          ErrorCode::kInvalidArgument,
          "{}: the padding layer '{}' feeds '{}' of type {}; only conv and pool layers with one "
          "bottom can pad",
          name, padding.layer().name(), layer->layer().name(), type);
  layer->mutable_layer()->set_pad(padding.layer().pad());
  layer->set_bottom(0, padding.bottom(0));
}

}  // namespace

void RemoveV0Padding(std::vector<V1LayerParameter>* layers, const std::string& name) {
  // Maps each blob to the last layer so far that writes it.
  std::map<std::string, const V1LayerParameter*> maker;
  for (V1LayerParameter& layer : *layers) {
    if (IsPadding(layer)) {
      Require(layer.bottom_size() == 1 && layer.top_size() == 1, ErrorCode::kInvalidArgument,
              "{}: the padding layer '{}' has {} bottom(s) and {} top(s); it needs one of each",
              name, layer.layer().name(), layer.bottom_size(), layer.top_size());
    } else {
      // Iterates over a copy, because PadIn changes the layer's bottom.
      for (const std::string& bottom : std::vector(layer.bottom())) {
        const auto found = maker.find(bottom);
        if (found != maker.end() && IsPadding(*found->second)) PadIn(*found->second, name, &layer);
      }
    }
    for (const std::string& top : layer.top()) maker[top] = &layer;
  }
  std::erase_if(*layers, IsPadding);
}

}  // namespace hearth::caffe
