// Runs a step of a layer so that anything it throws names the layer.
#pragma once

#include "hearth/base/timeline.h"
#include "hearth/caffe/net/layer.h"

namespace hearth::caffe {

// Rethrows the current exception as LayerError "layer 'conv1' (Convolution), forward: ...". The
// message includes `bottoms` if the failure came from the tensor library.
[[noreturn]] void RethrowFromLayer(const Layer& layer, const char* doing, const Blobs& bottoms);

// The step that a thread executes in a layer: for crash reports, which may read it in a signal
// handler.
struct LayerStep {
  const Layer* layer = nullptr;
  const char* doing = "";
};
// This thread's step. A thread without one, such as a helper of the tensor library, gets the step
// of another thread.
LayerStep CurrentLayerStep() noexcept;

// Sets this thread's step during its lifetime.
class LayerStepScope {
 public:
  LayerStepScope(const Layer& layer, const char* doing) noexcept;
  ~LayerStepScope();
  LayerStepScope(const LayerStepScope&) = delete;
  LayerStepScope& operator=(const LayerStepScope&) = delete;

 private:
  const LayerStep before_;
};

// Records an event of the timeline, unless the step is too short to be of interest.
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
