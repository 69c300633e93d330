// Runs a step of a layer and adds the layer's name to any exception.
#pragma once

#include "hearth/base/timeline.h"
#include "hearth/caffe/net/layer.h"

namespace hearth::caffe {

// Rethrows the current exception as a LayerError "layer 'conv1' (Convolution), forward: ...". For
// an error of the tensor library, the message includes the shapes of `bottoms`.
[[noreturn]] void RethrowFromLayer(const Layer& layer, const char* doing, const Blobs& bottoms);

// What a thread is executing: a layer, and the function that it runs. Crash reports read this,
// possibly in a signal handler.
struct LayerStep {
  const Layer* layer = nullptr;
  const char* doing = "";
};
// Returns the step of this thread. If this thread has none, such as a worker of the tensor library,
// returns the most recent step of any thread.
LayerStep CurrentLayerStep() noexcept;

// Sets the step of this thread while the object exists.
class LayerStepScope {
 public:
  LayerStepScope(const Layer& layer, const char* doing) noexcept;
  ~LayerStepScope();
  LayerStepScope(const LayerStepScope&) = delete;
  LayerStepScope& operator=(const LayerStepScope&) = delete;

 private:
  const LayerStep before_;
};

// Adds its lifetime to the timeline as a step of the layer, unless it is too short to be of
// interest.
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
