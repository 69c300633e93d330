// For tests: references of elementwise layers.
#pragma once

#include "hearth/caffe/layers/testing/layer_testing.h"

namespace hearth::caffe {

// top = f(bottom), with f over doubles.
template <typename Function>
auto ElementReference(Function f) {
  return [f](const Arrays& bottoms, const Arrays&) {
    Array y = bottoms[0];
    for (float& value : y.values) value = static_cast<float>(f(static_cast<double>(value)));
    return Arrays{y};
  };
}

// A row of the layer table whose layer is also run in place, with inputs in [low, high].
template <typename Function>
LayerCase ElementCase(std::string name, std::string layer, Function f, float low = -2,
                      float high = 2) {
  LayerCase row{std::move(name), std::move(layer), {{{3, 2, 4}, low, high}}, ElementReference(f)};
  row.in_place = true;
  return row;
}

}  // namespace hearth::caffe
