#include "hearth/caffe/net/layer_step.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "hearth/base/error.h"
#include "hearth/caffe/net/layer_error.h"
#include "hearth/caffe/net/out_of_memory.h"

namespace hearth::caffe {
namespace {

std::string ShapesOf(const Blobs& blobs) {
  std::string text;
  for (const Blob* blob : blobs) text += (text.empty() ? "" : "; ") + blob->ShapeString();
  return text.empty() ? "none" : text;
}

// "you tried to allocate 48 bytes" of the allocator's text, which goes on about its own source.
std::string_view WantedMemory(std::string_view text) {
  const size_t begin = std::min(text.find("you tried"), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find('.'));
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
  } catch (const c10::OutOfMemoryError& error) {
    fail(ErrorCode::kResourceExhausted, error.what_without_backtrace(), true);
  } catch (const c10::Error& error) {
    const std::string_view text = error.what_without_backtrace();
    if (IsOutOfMemory(error)) {
      fail(ErrorCode::kResourceExhausted, fmt::format("out of memory: {}", WantedMemory(text)),
           true);
    }
    fail(ErrorCode::kInternal, text, true);
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::kResourceExhausted, "out of memory", true);
  } catch (const std::exception& error) {
    fail(ErrorCode::kInternal, error.what(), false);
  }
  std::terminate();  // not reached: what is no std::exception has left by `throw`
}

void LayerSpan::Draw() const noexcept {
  constexpr auto kShortest = std::chrono::microseconds(2);  // most layers have no rows to fetch
  const auto end = timeline::Clock::now();
  if (begin_ == timeline::Clock::time_point() || end - begin_ < kShortest) return;
  try {
    timeline::Add({"layer", layer_.name() + " " + doing_, begin_, end});
  } catch (const std::exception&) {  // without memory there is no picture
  }
}

}  // namespace hearth::caffe
