// Runs a step of a layer so that whatever it throws names the layer.
#pragma once

#include "hearth/base/timeline.h"
#include "hearth/caffe/net/layer.h"

namespace hearth::caffe {

// Rethrows the exception being handled as LayerError "layer 'conv1' (Convolution), forward: ...".
// `bottoms` are part of the message when the failure came from the tensor library.
[[noreturn]] void RethrowFromLayer(const Layer& layer, const char* doing, const Blobs& bottoms);

// What a thread does in a layer: for reports of crashes, which may read it in a signal handler.
struct LayerStep {
  const Layer* layer = nullptr;
  const char* doing = "";
};
// This thread's step. A thread without one, such as a helper of the tensor library, gets the step
// of some other thread.
LayerStep CurrentLayerStep() noexcept;

// Sets this thread's step while it lives.
class LayerStepScope {
 public:
  LayerStepScope(const Layer& layer, const char* doing) noexcept;
  ~LayerStepScope();
  LayerStepScope(const LayerStepScope&) = delete;
  LayerStepScope& operator=(const LayerStepScope&) = delete;

 private:
  const LayerStep before_;
};

// An event of the timeline, unless the step is so short that it would only be in the way.
class LayerSpan {
 public:
  LayerSpan(const Layer& layer, const char* doing) noexcept : layer_(layer), doing_(doing) {
    if (timeline::On()) begin_ = timeline::Clock::now();
  }
  ~LayerSpan() {
    if (timeline::On()) Draw();
  }
  LayerSpan(const LayerSpan&) = delete;
  LayerSpan& operator=(const LayerSpan&) = delete;

 private:
  void Draw() const noexcept;

  const Layer& layer_;
  const char* const doing_;
  timeline::Clock::time_point begin_;
};

template <typename Run>
auto InLayer(const Layer& layer, const char* doing, const Blobs& bottoms, Run run) {
  const LayerStepScope scope(layer, doing);
  const LayerSpan span(layer, doing);
  try {
    return run();
  } catch (...) {
    RethrowFromLayer(layer, doing, bottoms);
  }
}

}  // namespace hearth::caffe
