// Python's handles to blobs and layers. Handles taken from a net keep the net alive. Handles passed
// to a Python layer become invalid when their net is destroyed; they then throw instead of
// accessing freed memory.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/net/layer.h"
#include "hearth/caffe/tensor/blob.h"

namespace hearth::bindings {

// A handle to a T. Copy and destroy it only while holding the GIL.
template <typename T>
class Held {
 public:
  // Keeps `owner`, the Python object that owns `value`, alive.
  static Held KeepingAlive(T& value, nanobind::handle owner) {
    std::shared_ptr<const void> owned = std::make_shared<nanobind::object>(nanobind::borrow(owner));
    return Held(value, owned, owned);
  }
  static Held Sharing(std::shared_ptr<T> value) { return Held(*value, value, value); }
  // The handle is valid until `life` expires.
  static Held Within(T& value, const std::shared_ptr<const void>& life) {
    return Held(value, nullptr, life);
  }

  T& get() const {
    Require(!life_.expired(), ErrorCode::kInvalidArgument,
            "the net of this {} was destroyed; keep a reference to the net while using it",
            std::is_same_v<T, caffe::Blob> ? "blob" : "layer");
    return *value_;
  }

 private:
  Held(T& value, std::shared_ptr<const void> owned, std::weak_ptr<const void> life)
      : value_(&value), owned_(std::move(owned)), life_(std::move(life)) {}

  T* value_;
  std::shared_ptr<const void> owned_;
  std::weak_ptr<const void> life_;
};

using BlobHandle = Held<caffe::Blob>;
using LayerHandle = Held<caffe::Layer>;

// Parameters of a layer as a Python sequence.
struct ParamBlobs {
  LayerHandle layer;
};

}  // namespace hearth::bindings
