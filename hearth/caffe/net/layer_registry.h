#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hearth/caffe/net/layer.h"

namespace hearth::caffe {

// Registry of the layer types. Each family's file in layers/ has a function that adds its types;
// the build lists these functions by the files' names. Static constructors register nothing.
class LayerRegistry {
 public:
  using Factory = std::function<std::unique_ptr<Layer>(const LayerParameter&, const NetContext&)>;

  // The registry with every layer of layers/. Built once, by layers/all_layers.cc, then read-only
  // and safe to share.
  static const LayerRegistry& Default();

  template <typename LayerType>
  void Add(const std::string& type) {
    Add(type, [](const LayerParameter& param, const NetContext& context) -> std::unique_ptr<Layer> {
      return std::make_unique<LayerType>(param, context);
    });
  }
  void Add(const std::string& type, Factory factory);

  // Throws kInvalidArgument for an unknown type, with the nearest known names.
  std::unique_ptr<Layer> Create(const LayerParameter& param, const NetContext& context) const;
  std::vector<std::string> types() const;

 private:
  std::map<std::string, Factory> factories_;
};

}  // namespace hearth::caffe
