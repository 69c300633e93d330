#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hearth/caffe/net/layer.h"

namespace hearth::caffe {

// Registry of the layer types. Each file in layers/ defines a function that registers its types.
// The build generates the list of these functions from the file names, so no static constructors
// are needed.
class LayerRegistry {
 public:
  using Factory = std::function<std::unique_ptr<Layer>(const LayerParameter&, const NetContext&)>;

  // The registry of all layers in layers/. It is built once, by layers/all_layers.cc; after that it
  // is read-only and can be shared by threads.
  static const LayerRegistry& Default();

  template <typename LayerType>
  void Add(const std::string& type) {
    Add(type, [](const LayerParameter& param, const NetContext& context) -> std::unique_ptr<Layer> {
      return std::make_unique<LayerType>(param, context);
    });
  }
  void Add(const std::string& type, Factory factory);

  // Throws kInvalidArgument for an unknown type and suggests the most similar names.
  std::unique_ptr<Layer> Create(const LayerParameter& param, const NetContext& context) const;
  std::vector<std::string> types() const;

 private:
  std::map<std::string, Factory> factories_;
};

}  // namespace hearth::caffe
