#include "hearth/caffe/layers/all_layers.h"

namespace hearth::caffe {

void RegisterAllLayers(LayerRegistry& registry) {
#define HEARTH_REGISTER(family) Register##family(registry);
  HEARTH_LAYER_FAMILIES(HEARTH_REGISTER)
#undef HEARTH_REGISTER
}

const LayerRegistry& LayerRegistry::Default() {
  static const LayerRegistry registry = [] {
    LayerRegistry all;
    RegisterAllLayers(all);
    return all;
  }();
  return registry;
}

}  // namespace hearth::caffe
