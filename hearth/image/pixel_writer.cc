#include "hearth/image/pixel_writer.h"

#include <bit>

#include "hearth/base/for_each_cpu.h"

namespace hearth::image {
namespace {

using Bfloat16 = uint16_t;

HEARTH_INLINE void Store(float value, float* out) { *out = value; }

// Rounds to the nearest value, or to the even one if two are equally near. `value` must be finite.
HEARTH_INLINE void Store(float value, Bfloat16* out) {
  const auto bits = std::bit_cast<uint32_t>(value);
  // Adds half a unit of the lowest remaining bit, minus 1 if that bit is 0, and truncates.
  *out = static_cast<Bfloat16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <typename T>
HEARTH_INLINE void WritePlane(const uint32_t* pixels, int64_t count, int shift,
                              std::array<float, 2> line, T* out) {
  for (int64_t x = 0; x < count; ++x) {
    const auto level = static_cast<int32_t>(pixels[x] >> shift & 255);
    Store(static_cast<float>(level) * line[0] + line[1], out + x);
  }
}

HEARTH_FOR_EACH_CPU void WriteFloats(const uint32_t* pixels, int64_t count, int shift,
                                     std::array<float, 2> line, float* out) {
  WritePlane(pixels, count, shift, line, out);
}

HEARTH_FOR_EACH_CPU void WriteFloats(const uint32_t* pixels, int64_t count, int shift,
                                     std::array<float, 2> line, Bfloat16* out) {
  WritePlane(pixels, count, shift, line, out);
}

HEARTH_FOR_EACH_CPU void WriteBytes(const uint32_t* pixels, int64_t count, int shift,
                                    uint8_t* out) {
  for (int64_t x = 0; x < count; ++x) out[x] = static_cast<uint8_t>(pixels[x] >> shift);
}

}  // namespace

PixelWriter::PixelWriter(const ImageOptions& options)
    : height_(options.height), width_(options.width), type_(options.type), layout_(options.layout) {
  for (int c = 0; c < 3; ++c) {
    const double mean = options.mean ? (*options.mean)[c] : 0.0;
    const double std = options.std ? (*options.std)[c] : 1.0;
    // (v / 255 - mean) / std is computed as v * scale + offset: one multiplication and one addition
    // per value.
    scale_[c] = static_cast<float>(1 / (255 * std));
    offset_[c] = static_cast<float>(-mean / std);
  }
}

void PixelWriter::WriteLine(const uint32_t* pixels, int64_t y, std::byte* image) const {
  switch (type_) {
    case PixelType::kUint8:
      return Write(pixels, y, reinterpret_cast<uint8_t*>(image));
    case PixelType::kFloat32:
      return Write(pixels, y, reinterpret_cast<float*>(image));
    case PixelType::kBfloat16:
      return Write(pixels, y, reinterpret_cast<Bfloat16*>(image));
  }
}

template <typename T>
void PixelWriter::Write(const uint32_t* pixels, int64_t y, T* image) const {
  // In C x H x W, a line is written to three contiguous planes, so the loops are vectorized. In H x
  // W x C, the channels of a pixel are adjacent.
  if (layout_ == PixelLayout::kNchw) {
    for (int c = 0; c < 3; ++c) {
      T* out = image + (c * height_ + y) * width_;
      if constexpr (sizeof(T) == 1) {
        WriteBytes(pixels, width_, 8 * c, out);
      } else {
        WriteFloats(pixels, width_, 8 * c, {scale_[c], offset_[c]}, out);
      }
    }
    return;
  }
  T* out = image + y * width_ * 3;
  for (int64_t x = 0; x < width_; ++x) {
    for (int c = 0; c < 3; ++c, ++out) {
      const auto level = static_cast<uint8_t>(pixels[x] >> 8 * c);
      if constexpr (sizeof(T) == 1) {
        *out = level;
      } else {
        Store(static_cast<float>(level) * scale_[c] + offset_[c], out);
      }
    }
  }
}

}  // namespace hearth::image
