// hearth.native._core: decodes images into arrays for training.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array_memory.h"
#include "buffer_view.h"
#include "gil.h"
#include "hearth/base/error.h"
#include "hearth/image/image_transform.h"
#include "module.h"
#include "new_array.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using image::ImageTransform;

template <typename T>
using Choices = std::initializer_list<std::pair<std::string_view, T>>;

template <typename T>
T ChoiceOf(const char* what, const std::string& name, Choices<T> choices) {
  std::string names;
  for (const auto& [choice, value] : choices) {
    if (choice == name) return value;
    names += (names.empty() ? "" : ", ") + std::string(choice);
  }
  Throw(ErrorCode::kInvalidArgument, "image {} '{}' is not one of {}", what, name, names);
}

image::CropMode CropOf(const std::optional<std::string>& name) {
  if (!name) return image::CropMode::kNone;
  return ChoiceOf<image::CropMode>(
      "crop", *name, {{"random", image::CropMode::kRandom}, {"center", image::CropMode::kCenter}});
}

// A transform and its number of threads.
class PythonImageTransform {
 public:
  PythonImageTransform(const image::ImageOptions& options, int threads)
      : transform_(options), threads_(threads) {
    Require(threads > 0, ErrorCode::kInvalidArgument,
            "cannot decode images with {} threads: need at least 1", threads);
  }

  nb::tuple Apply(const nb::sequence& encoded, const nb::object& seeds) const;
  std::string Reason(const nb::object& encoded, uint64_t seed) const;

 private:
  nb::object NewArray(size_t count, std::byte** data) const;

  const ImageTransform transform_;
  const int threads_;
  const std::shared_ptr<ArrayMemory> memory_ = std::make_shared<ArrayMemory>();
};

template <typename T>
nb::object ArrayOf(std::byte* data, const nb::capsule& owner, size_t count,
                   const std::array<int64_t, 3>& shape) {
  const std::array<size_t, 4> sizes = {count, static_cast<size_t>(shape[0]),
                                       static_cast<size_t>(shape[1]),
                                       static_cast<size_t>(shape[2])};
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<4>>(data, 4, sizes.data(), owner));
}

nb::object PythonImageTransform::NewArray(size_t count, std::byte** data) const {
  auto [memory, owner] = memory_->Take(count * transform_.bytes_per_image());
  *data = memory;
  switch (transform_.options().type) {
    case image::PixelType::kFloat32:
      return ArrayOf<float>(memory, owner, count, transform_.shape());
    case image::PixelType::kBfloat16:
      // NumPy has no bfloat16, so the bits are returned as uint16; torch can view them as bfloat16.
      return ArrayOf<uint16_t>(memory, owner, count, transform_.shape());
    case image::PixelType::kUint8:
      break;
  }
  return ArrayOf<uint8_t>(memory, owner, count, transform_.shape());
}

using Seeds = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::tuple PythonImageTransform::Apply(const nb::sequence& encoded, const nb::object& seeds) const {
  // The buffers hold references to the images, so the threads may read them without the GIL.
  std::deque<BufferView> buffers;  // a deque, so that the addresses are stable
  std::vector<std::string_view> views;
  for (nb::handle item : encoded) views.push_back(buffers.emplace_back(item).bytes());
  const auto numbers = nb::cast<Seeds>(seeds);
  std::byte* data = nullptr;
  nb::object pixels = NewArray(views.size(), &data);
  std::vector<bool> lost;
  {
    const ReleasedGil released;
    transform_.ApplyAll(views, {numbers.data(), numbers.size()}, threads_, data, &lost);
  }
  using Flags = nb::ndarray<nb::numpy, bool, nb::ndim<1>>;
  const auto failed =
      ArrayOver<Flags>(std::vector<uint8_t>(lost.begin(), lost.end()), {lost.size()});
  return nb::make_tuple(std::move(pixels), failed);
}

std::string PythonImageTransform::Reason(const nb::object& encoded, uint64_t seed) const {
  const BufferView buffer(encoded);
  // Finds the reason by decoding the image again, on this thread. Apply does not return the
  // reasons, because they are rarely needed and would cost a string for each image.
  const ReleasedGil released;
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(transform_.bytes_per_image());
  try {
    transform_.Apply(buffer.bytes(), seed, memory.get());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kDataLoss) return error.message();
    throw;
  }
  return "";
}

using Channels = std::optional<std::array<float, 3>>;

void Make(PythonImageTransform* self, const std::string& kind, std::pair<int64_t, int64_t> size,
          const std::optional<std::string>& crop, bool flip, const Channels& mean,
          const Channels& std, const std::string& to, const std::string& layout, int threads,
          bool scaled_decoding) {
  image::ImageOptions options;
  options.kind = ChoiceOf<image::ImageKind>("kind", kind,
                                            {{"jpeg", image::ImageKind::kJpeg},
                                             {"png", image::ImageKind::kPng},
                                             {"any", image::ImageKind::kAny}});
  options.crop = CropOf(crop);
  options.height = size.first;
  options.width = size.second;
  options.flip = flip;
  options.mean = mean;
  options.std = std;
  options.type = ChoiceOf<image::PixelType>("type", to,
                                            {{"uint8", image::PixelType::kUint8},
                                             {"float32", image::PixelType::kFloat32},
                                             {"bfloat16", image::PixelType::kBfloat16}});
  options.layout = ChoiceOf<image::PixelLayout>(
      "layout", layout, {{"nchw", image::PixelLayout::kNchw}, {"nhwc", image::PixelLayout::kNhwc}});
  options.scaled_decoding = scaled_decoding;
  new (self) PythonImageTransform(options, threads);
}

}  // namespace

void RegisterImage(nb::module_& m) {
  nb::class_<PythonImageTransform>(
      m, "ImageTransform", "Decodes, crops, resizes, mirrors and normalizes images on threads.")
      .def("__init__", Make, "kind"_a, "size"_a, "crop"_a.none(), "flip"_a, "mean"_a.none(),
           "std"_a.none(), "to"_a, "layout"_a, "threads"_a, "scaled_decoding"_a = true)
      .def("apply", &PythonImageTransform::Apply, "encoded"_a, "seeds"_a,
           "Transforms images (objects with the buffer interface) with a uint64 array of seeds to "
           "an array [n, 3, height, width] or [n, height, width, 3] (bfloat16 as uint16) and a "
           "bool array: "
           "true for images that could not be decoded, which are zeros.")
      .def("reason", &PythonImageTransform::Reason, "encoded"_a, "seed"_a = 0,
           "Reason why an image cannot be decoded; empty if it can.");
}

}  // namespace hearth::bindings
