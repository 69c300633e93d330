#include "hearth/caffe/net/layer_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_error.h"
#include "hearth/caffe/tensor/tensor_error.h"

namespace hearth::caffe {
namespace {

std::string ShapesOf(const Blobs& blobs) {
  std::string text;
  for (const Blob* blob : blobs) text += (text.empty() ? "" : "; ") + blob->ShapeString();
  return text.empty() ? "none" : text;
}

// If a thread that a layer has started crashes, it may have recorded no step. The last step of any
// thread is the best guess then.
thread_local LayerStep this_threads_step;
std::atomic<const Layer*> last_layer{nullptr};
std::atomic<const char*> last_doing{""};

void Note(LayerStep step) noexcept {
  this_threads_step = step;
  last_layer.store(step.layer, std::memory_order_relaxed);
  last_doing.store(step.doing, std::memory_order_relaxed);
}

}  // namespace

LayerStepScope::LayerStepScope(const Layer& layer, const char* doing) noexcept
    : before_(this_threads_step) {
  Note({&layer, doing});
}

LayerStepScope::~LayerStepScope() { Note(before_); }

LayerStep CurrentLayerStep() noexcept {
  const LayerStep own = this_threads_step;
  if (own.layer != nullptr) return own;
  return {last_layer.load(std::memory_order_relaxed), last_doing.load(std::memory_order_relaxed)};
}

// Must be called in a catch block, because `throw;` rethrows the exception that is being handled.
// Errors of this code base keep their code. Errors of libraries do not mention shapes, so the
// bottoms' shapes are added.
void RethrowFromLayer(const Layer& layer, const char* doing, const Blobs& bottoms) {
  const std::string where = fmt::format("layer '{}' ({}), {}", layer.name(), layer.type(), doing);
  const auto fail_with_shapes = [&](ErrorCode code, std::string_view reason) {
    throw LayerError(code,
                     fmt::format("{}: {} (bottom shapes {})", where, reason, ShapesOf(bottoms)),
                     layer.name());
  };
  try {
    throw;
  } catch (const Error& error) {
    throw LayerError(error.code(), where, layer.name(), error);
  } catch (const TensorError& error) {
    const bool memory = error.out_of_memory();
    fail_with_shapes(memory ? ErrorCode::kResourceExhausted : ErrorCode::kInternal, error.what());
  } catch (const std::bad_alloc&) {
    fail_with_shapes(ErrorCode::kResourceExhausted, "out of memory");
  } catch (const std::exception& error) {
    throw LayerError(ErrorCode::kInternal, where, layer.name(), error);
  }
  std::terminate();  // not reached: exceptions of other types have propagated
}

void LayerSpan::Draw() const noexcept {
  // Longer than most calls of Fetch, which do nothing.
  constexpr auto kShortest = std::chrono::microseconds(2);
  const auto end = timeline::Clock::now();
  if (begin_ == timeline::Clock::time_point() || end - begin_ < kShortest) return;
  try {
    timeline::Add({"layer", layer_.name() + " " + doing_, begin_, end});
  } catch (const std::exception&) {  // the event is dropped if memory is exhausted
  }
}

}  // namespace hearth::caffe
