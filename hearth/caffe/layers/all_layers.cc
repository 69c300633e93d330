// The default registry of layer types. CMakeLists.txt generates layer_families.inc, which contains
// one line per layer file, such as FAMILY(Tile) for tile.cc.
#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_registry.h"

namespace hearth::caffe {

#define FAMILY(name) void Register##name(LayerRegistry& registry);
#include "hearth/caffe/layers/layer_families.inc"
#undef FAMILY

namespace {

void AddFamily(const char* name, void (*add)(LayerRegistry&), LayerRegistry* all) {
  const size_t before = all->types().size();
  add(*all);
  Require(all->types().size() > before, ErrorCode::kInternal, "Register{} adds no layer type",
          name);
}

}  // namespace

const LayerRegistry& LayerRegistry::Default() {
  static const LayerRegistry registry = [] {
    LayerRegistry all;
#define FAMILY(name) AddFamily(#name, Register##name, &all);
#include "hearth/caffe/layers/layer_families.inc"
#undef FAMILY
    return all;
  }();
  return registry;
}

}  // namespace hearth::caffe
