// hearth.native._caffe.Blob, BlobVec and Layer. Arrays are views of the engine's memory.
#include "caffe_blob.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "caffe_module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using caffe::Blob;
using caffe::Blobs;
using caffe::Shape;
using View = nb::ndarray<nb::numpy, float>;

// Returns an array that keeps its memory alive, even after the blob has moved to a larger block of
// memory.
View ViewOf(const caffe::Tensor& tensor) {
  // Copies the handle, not the numbers.
  auto copy = std::make_unique<caffe::Tensor>(tensor);
  float* data = copy->data_ptr();
  const Shape sizes = tensor.sizes(), strides = tensor.strides();
  const std::vector<size_t> shape(sizes.begin(), sizes.end());
  nb::capsule owner(copy.release(),
                    [](void* p) noexcept { delete static_cast<caffe::Tensor*>(p); });
  return View(data, shape.size(), shape.data(), owner, strides.data());
}

// Accepts reshape(2, 3) and reshape((2, 3)).
Shape ShapeOf(const nb::args& dims) {
  const bool one_sequence = dims.size() == 1 && nb::isinstance<nb::sequence>(dims[0]);
  return nb::cast<Shape>(one_sequence ? nb::handle(dims[0]) : nb::handle(dims));
}

// Returns the length of a legacy axis (num, channels, height, width); a missing axis has length 1.
int64_t LegacyAxis(const BlobHandle& handle, int64_t axis) {
  const Blob& blob = handle.get();
  Require(blob.num_axes() <= 4, ErrorCode::kInvalidArgument,
          "a blob of shape {} has no num, channels, height and width; use shape",
          blob.ShapeString());
  return axis < blob.num_axes() ? blob.shape(axis) : 1;
}

BlobHandle ParamAt(const ParamBlobs& params, int64_t index) {
  const auto& blobs = params.layer.get().blobs();
  const auto count = static_cast<int64_t>(blobs.size());
  // Python uses IndexError to end a for loop over __getitem__.
  if (index < -count || index >= count) throw nb::index_error("no such parameter blob");
  return BlobHandle::Sharing(blobs[index < 0 ? index + count : index]);
}

Blobs BlobsOf(const std::vector<BlobHandle>& handles) {
  Blobs blobs;
  for (const BlobHandle& handle : handles) blobs.push_back(&handle.get());
  return blobs;
}

void RegisterBlob(nb::module_& m) {
  nb::class_<BlobHandle>(m, "Blob", "A float32 array and its gradient, owned by a net.")
      .def_prop_ro(
          "data", [](const BlobHandle& blob) { return ViewOf(blob.get().data()); },
          nb::rv_policy::automatic,
          "The values as a float32 view of `shape`: writing to it changes the net. It stays valid "
          "after a reshape, but no longer refers to the blob.")
      .def_prop_ro(
          "diff", [](const BlobHandle& blob) { return ViewOf(blob.get().diff()); },
          nb::rv_policy::automatic, "The gradient, as a float32 view of `shape`.")
      .def_prop_ro("shape",
                   [](const BlobHandle& blob) { return nb::tuple(nb::cast(blob.get().shape())); })
      .def_prop_ro("count", [](const BlobHandle& blob) { return blob.get().count(); })
      .def_prop_ro("num", [](const BlobHandle& blob) { return LegacyAxis(blob, 0); })
      .def_prop_ro("channels", [](const BlobHandle& blob) { return LegacyAxis(blob, 1); })
      .def_prop_ro("height", [](const BlobHandle& blob) { return LegacyAxis(blob, 2); })
      .def_prop_ro("width", [](const BlobHandle& blob) { return LegacyAxis(blob, 3); })
      .def(
          "reshape",
          [](const BlobHandle& blob, const nb::args& dims) { blob.get().Reshape(ShapeOf(dims)); },
          "dims"_a,
          "Changes the shape: reshape(2, 3) or reshape((2, 3)). Raises ValueError for "
          "negative dimensions.");
}

}  // namespace

void RegisterBlobs(nb::module_& m) {
  RegisterBlob(m);
  nb::class_<ParamBlobs>(m, "BlobVec", "The parameters of a layer, a sequence of Blob.")
      .def("__len__", [](const ParamBlobs& self) { return self.layer.get().blobs().size(); })
      .def("__getitem__", ParamAt, "index"_a)
      .def(
          "add_blob",
          [](const ParamBlobs& self, const nb::args& dims) {
            self.layer.get().blobs().push_back(std::make_shared<Blob>(ShapeOf(dims)));
          },
          "dims"_a, "Appends a parameter of zeros; for the setup of Python layers.");
  nb::class_<LayerHandle>(m, "Layer", "A layer of a net.")
      .def_prop_ro("name", [](const LayerHandle& layer) { return layer.get().name(); })
      .def_prop_ro("type", [](const LayerHandle& layer) { return layer.get().type(); })
      .def_prop_ro("blobs", [](const LayerHandle& layer) { return ParamBlobs{layer}; })
      .def(
          "setup",
          [](const LayerHandle& layer, const std::vector<BlobHandle>& bottom,
             const std::vector<BlobHandle>& top) {
            layer.get().SetUp(BlobsOf(bottom), BlobsOf(top));
          },
          "bottom"_a, "top"_a, "Sets up the layer again for these blobs.")
      .def(
          "reshape",
          [](const LayerHandle& layer, const std::vector<BlobHandle>& bottom,
             const std::vector<BlobHandle>& top) {
            layer.get().Reshape(BlobsOf(bottom), BlobsOf(top));
          },
          "bottom"_a, "top"_a, "Sets the shapes of `top` from those of `bottom`.");
}

}  // namespace hearth::bindings
