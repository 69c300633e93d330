#include "hearth/caffe/net/layer_registry.h"

#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_error.h"
#include "hearth/caffe/proto/nearest.h"

namespace hearth::caffe {

void LayerRegistry::Add(const std::string& type, Factory factory) {
  Require(factories_.emplace(type, std::move(factory)).second, ErrorCode::kInternal,
          "the layer type {} is registered twice", type);
}

std::unique_ptr<Layer> LayerRegistry::Create(const LayerParameter& param,
                                             const NetContext& context) const {
  const auto found = factories_.find(param.type());
  if (found == factories_.end()) {
    RequireInLayer(param.name(), false, ErrorCode::kInvalidArgument,
                   "layer '{}': unknown layer type '{}'{}", param.name(), param.type(),
                   DidYouMean(param.type(), types()));
  }
  return found->second(param, context);
}

std::vector<std::string> LayerRegistry::types() const {
  std::vector<std::string> names;
  for (const auto& [name, factory] : factories_) names.push_back(name);
  return names;
}

}  // namespace hearth::caffe
