#include "hearth/image/region_reader.h"

#include <algorithm>
#include <cstring>

#include "hearth/base/error.h"
#include "hearth/image/decode.h"
#include "hearth/image/jpeg_decoder.h"
#include "hearth/image/png.h"

namespace hearth::image {
namespace {

// Upsampling reads the adjacent color sample, so a cropped line needs additional pixels at its
// edges.
constexpr int64_t kMargin = 2;
// Number of bytes that an intact file may have after the end-of-image marker. Some cameras and
// programs write padding.
constexpr size_t kMaxTail = 64;

bool EndsWithItsMarker(std::string_view bytes) {
  const std::string_view end = bytes.substr(bytes.size() - std::min(bytes.size(), kMaxTail));
  return end.find("\xff\xd9") != std::string_view::npos;
}

class JpegRegionReader final : public RegionReader {
 public:
  JpegRegionReader(std::string_view bytes, ReaderMemory* memory) : bytes_(bytes), memory_(memory) {
    ReadJpegHeader(bytes, &decoder_);
    height_ = decoder_.height();
    width_ = decoder_.width();
  }

  bool reduces() const override { return true; }

  void Begin(const Region& region, int factor, int64_t padding) override {
    decoder_.set_reduction(factor);
    decoder_.set_color_space(decoder_.is_cmyk() ? JCS_CMYK : JCS_EXT_RGB);
    RequireJpeg(decoder_.Start(), decoder_);
    int64_t left = std::max<int64_t>(0, region.left - kMargin);
    const int64_t right = std::min(decoder_.line_width(), region.left + region.width + kMargin);
    if (right - left < decoder_.line_width()) {
      RequireJpeg(decoder_.CropColumns(&left, right - left), decoder_);
    }
    RequireJpeg(decoder_.SkipLines(region.top), decoder_);
    const int64_t channels = decoder_.is_cmyk() ? 4 : 3;
    memory_->line.resize(decoder_.line_width() * channels + padding);
    line_ = memory_->line.data();
    wanted_ = line_ + (region.left - left) * 3;
  }

  const uint8_t* NextLine() override {
    RequireJpeg(decoder_.ReadLine(line_), decoder_);
    if (decoder_.is_cmyk()) {
      InkToColors(line_, decoder_.line_width(), decoder_.has_adobe_marker(), true, line_);
    }
    return wanted_;
  }

  void Finish() override {
    // Lines below the region are not decoded only to check that the file is complete: in most
    // files, the end marker shows that.
    const int64_t left = decoder_.line_count() - decoder_.next_line();
    if (left == 0) {
      RequireJpeg(decoder_.Finish(), decoder_);
    } else if (!EndsWithItsMarker(bytes_)) {
      // Skipping to the end does not read the bytes, so the last line is decoded.
      RequireJpeg(decoder_.SkipLines(left - 1), decoder_);
      RequireJpeg(decoder_.ReadLine(line_) && decoder_.Finish(), decoder_);
    }
    RequireWholeJpeg(bytes_, decoder_);
  }

 private:
  const std::string_view bytes_;
  ReaderMemory* const memory_;
  JpegDecoder decoder_;
  uint8_t* line_ = nullptr;
  const uint8_t* wanted_ = nullptr;
};

// Reads a region of a PNG file. Decodes the whole file, because rows of a PNG file depend on
// earlier rows and may be interlaced.
class PngRegionReader final : public RegionReader {
 public:
  PngRegionReader(std::string_view bytes, ReaderMemory* memory) : memory_(memory) {
    DecodePng(bytes, ColorMode::kColor, true, &memory->image);
    height_ = memory->image.height;
    width_ = memory->image.width;
  }
  ~PngRegionReader() override {
    // Frees the memory after an unusually large image.
    std::vector<uint8_t>& pixels = memory_->image.pixels;
    if (pixels.capacity() > kMaxKept) std::vector<uint8_t>().swap(pixels);
  }

  bool reduces() const override { return false; }

  void Begin(const Region& region, int /*factor*/, int64_t padding) override {
    // Lines are copied, because there is no padding after the image's last line.
    memory_->line.resize(region.width * 3 + padding);
    bytes_ = region.width * 3;
    next_ = memory_->image.pixels.data() + (region.top * width_ + region.left) * 3;
  }

  const uint8_t* NextLine() override {
    std::memcpy(memory_->line.data(), next_, bytes_);
    next_ += width_ * 3;
    return memory_->line.data();
  }

  void Finish() override {}

 private:
  static constexpr size_t kMaxKept = size_t{32} << 20;

  ReaderMemory* const memory_;
  const uint8_t* next_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<RegionReader> OpenRegion(std::string_view bytes, ImageKind kind,
                                         ReaderMemory* memory) {
  const ImageKind found = KindOf(bytes);
  Require(kind == ImageKind::kAny || kind == found, ErrorCode::kDataLoss,
          "an image of {} bytes is a {} file, but kind is {}: use kind any to read both",
          bytes.size(), found == ImageKind::kPng ? "PNG" : "JPEG",
          found == ImageKind::kPng ? "jpeg" : "png");
  if (found == ImageKind::kPng) return std::make_unique<PngRegionReader>(bytes, memory);
  return std::make_unique<JpegRegionReader>(bytes, memory);
}

}  // namespace hearth::image
