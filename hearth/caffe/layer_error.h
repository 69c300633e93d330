// Runs a step of a layer so that whatever it throws names the layer.
#pragma once

#include "hearth/caffe/layer.h"

namespace hearth::caffe {

// Rethrows the exception being handled as Error "layer 'conv1' (Convolution), forward: ...".
// `bottoms` are part of the message when the failure came from the tensor library.
[[noreturn]] void RethrowFromLayer(const Layer& layer, const char* doing, const Blobs& bottoms);

template <typename Run>
auto InLayer(const Layer& layer, const char* doing, const Blobs& bottoms, Run run) {
  try {
    return run();
  } catch (...) {
    RethrowFromLayer(layer, doing, bottoms);
  }
}

}  // namespace hearth::caffe
