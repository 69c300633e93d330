// Blobs and layers as Python holds them. A net's own keep the net alive; those that a Python layer
// is handed end with their net, and then say so instead of touching freed memory.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/net/blob.h"
#include "hearth/caffe/net/layer.h"

namespace hearth::bindings {

// Copied and destroyed with the GIL only.
template <typename T>
class Held {
 public:
  // Keeps `owner`, the Python object that owns `value`, alive.
  static Held KeepingAlive(T& value, nanobind::handle owner) {
    std::shared_ptr<const void> kept = std::make_shared<nanobind::object>(nanobind::borrow(owner));
    return Held(value, kept, kept);
  }
  static Held Sharing(std::shared_ptr<T> value) { return Held(*value, value, value); }
  // Valid as long as something else keeps `life`.
  static Held Within(T& value, const std::shared_ptr<const void>& life) {
    return Held(value, nullptr, life);
  }

  T& get() const {
    Require(!life_.expired(), ErrorCode::kInvalidArgument,
            "the net of this {} is gone; keep the net as long as you use it",
            std::is_same_v<T, caffe::Blob> ? "blob" : "layer");
    return *value_;
  }

 private:
  Held(T& value, std::shared_ptr<const void> kept, std::weak_ptr<const void> life)
      : value_(&value), kept_(std::move(kept)), life_(std::move(life)) {}

  T* value_;
  std::shared_ptr<const void> kept_;
  std::weak_ptr<const void> life_;
};

using BlobHandle = Held<caffe::Blob>;
using LayerHandle = Held<caffe::Layer>;

// The parameters of a layer as a Python sequence.
struct ParamBlobs {
  LayerHandle layer;
};

}  // namespace hearth::bindings
