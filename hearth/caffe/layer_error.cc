#include "hearth/caffe/layer_error.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <exception>
#include <new>
#include <string>

#include "hearth/base/error.h"

namespace hearth::caffe {
namespace {

std::string ShapesOf(const Blobs& blobs) {
  std::string text;
  for (const Blob* blob : blobs) text += (text.empty() ? "" : "; ") + blob->ShapeString();
  return text.empty() ? "none" : text;
}

}  // namespace

void RethrowFromLayer(const Layer& layer, const char* doing, const Blobs& bottoms) {
  const std::string where = fmt::format("layer '{}' ({}), {}", layer.name(), layer.type(), doing);
  try {
    throw;
  } catch (const Error& error) {
    throw Error(error.code(), where, error);
  } catch (const c10::OutOfMemoryError& error) {
    Throw(ErrorCode::kResourceExhausted, "{}: {} (bottom shapes {})", where,
          error.what_without_backtrace(), ShapesOf(bottoms));
  } catch (const c10::Error& error) {
    Throw(ErrorCode::kInternal, "{}: {} (bottom shapes {})", where, error.what_without_backtrace(),
          ShapesOf(bottoms));
  } catch (const std::bad_alloc&) {
    Throw(ErrorCode::kResourceExhausted, "{}: out of memory (bottom shapes {})", where,
          ShapesOf(bottoms));
  } catch (const std::exception& error) {
    Throw(ErrorCode::kInternal, "{}: {}", where, error.what());
  }
}

}  // namespace hearth::caffe
