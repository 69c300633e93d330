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
#include "hearth/caffe/net/tensor_error.h"

namespace hearth::caffe {
namespace {

std::string ShapesOf(const Blobs& blobs) {
  std::string text;
  for (const Blob* blob : blobs) text += (text.empty() ? "" : "; ") + blob->ShapeString();
  return text.empty() ? "none" : text;
}

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

void RethrowFromLayer(const Layer& layer, const char* doing, const Blobs& bottoms) {
  const auto fail = [&](ErrorCode code, std::string_view reason, bool with_shapes) {
    std::string message =
        fmt::format("layer '{}' ({}), {}: {}", layer.name(), layer.type(), doing, reason);
    if (with_shapes) message += fmt::format(" (bottom shapes {})", ShapesOf(bottoms));
    throw LayerError(code, std::move(message), layer.name());
  };
  try {
    throw;
  } catch (const Error& error) {
    fail(error.code(), error.message(), false);
  } catch (const TensorError& error) {
    const bool memory = error.out_of_memory();
    fail(memory ? ErrorCode::kResourceExhausted : ErrorCode::kInternal, error.what(), true);
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::kResourceExhausted, "out of memory", true);
  } catch (const std::exception& error) {
    fail(ErrorCode::kInternal, error.what(), false);
  }
  std::terminate();  // not reached: `throw` propagates
                     // exceptions not derived from std::exception
}

void LayerSpan::Draw() const noexcept {
  constexpr auto kShortest = std::chrono::microseconds(2);  // most layers have no rows to fetch
  const auto end = timeline::Clock::now();
  if (begin_ == timeline::Clock::time_point() || end - begin_ < kShortest) return;
  try {
    timeline::Add({"layer", layer_.name() + " " + doing_, begin_, end});
  } catch (const std::exception&) {  // out of memory: no event
  }
}

}  // namespace hearth::caffe
