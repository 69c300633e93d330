#include "hearth/image/image_transform.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "hearth/base/error.h"
#include "hearth/base/for_each.h"
#include "hearth/image/placement.h"
#include "hearth/image/region_reader.h"
#include "hearth/image/resample.h"

namespace hearth::image {
namespace {

constexpr int64_t kMaxSide = 16384;
// The largest side that libjpeg allows. In PNG files with longer sides, one output pixel could
// cover millions of source pixels.
constexpr int64_t kMaxImageSide = 65500;

// Working memory of a thread.
struct Scratch {
  ReaderMemory reader;
  ResampleTable rows, columns;
  std::vector<uint32_t> lines;  // ring buffer of resampled source lines that an output line needs
  std::vector<const uint32_t*> window;
  std::vector<uint32_t> output;
};

// Returns memory that all images of a thread reuse. Otherwise, memory would be allocated, with page
// faults, for each of thousands of images.
Scratch& ScratchOfThisThread() {
  thread_local Scratch scratch;
  return scratch;
}

ImageOptions Checked(const ImageOptions& options) {
  Require(options.height > 0 && options.width > 0 && options.height <= kMaxSide &&
              options.width <= kMaxSide,
          ErrorCode::kInvalidArgument,
          "cannot resize images to {} x {} pixels: height and width must be from 1 to {}",
          options.height, options.width, kMaxSide);
  Require(options.type != PixelType::kUint8 || (!options.mean && !options.std),
          ErrorCode::kInvalidArgument,
          "mean and std have no effect on uint8 images: use float32 or bfloat16");
  for (int c = 0; c < 3; ++c) {
    const float mean = options.mean ? (*options.mean)[c] : 0.f;
    const float std = options.std ? (*options.std)[c] : 1.f;
    Require(std::isfinite(mean) && std::isfinite(std) && std > 0, ErrorCode::kInvalidArgument,
            "mean {} and std {} cannot normalize channel {}: both must be finite, and std above 0",
            mean, std, c);
  }
  return options;
}

// The minimum number of decoded pixels per output pixel, along a side, if libjpeg reduces the
// image. libjpeg smooths less than the triangle filter: with a minimum of 1, pixels differ by 3
// levels on average; with 1.25, by 1.8.
constexpr double kLeastStep = 1.25;

int ReductionOf(const Placement& placement) {
  const double step = std::min(placement.rows.step, placement.columns.step);
  int factor = 8;
  // Both sides are reduced by the same factor, so the smaller step determines it.
  while (factor > 1 && step < factor * kLeastStep) factor /= 2;
  return factor;
}

int64_t BytesPerValue(PixelType type) {
  return type == PixelType::kUint8 ? 1 : type == PixelType::kBfloat16 ? 2 : 4;
}

// Decodes and resamples line by line. Only the source lines for one output line are in memory.
void Resample(RegionReader* reader, const PixelWriter& writer, Scratch* scratch, std::byte* out) {
  const ResampleTable& rows = scratch->rows;
  const ResampleTable& columns = scratch->columns;
  const int64_t stride = PaddedPixels(columns.count());
  const int64_t slots = rows.taps(), height = rows.high() - rows.low();
  scratch->lines.resize(slots * stride);
  scratch->window.resize(slots);
  scratch->output.resize(stride);
  // Reads each source line once, in order; consecutive output lines have most of their source lines
  // in common.
  int64_t read = 0;
  for (int64_t y = 0; y < rows.count(); ++y) {
    const int64_t first = rows.first(y);
    const int64_t end = std::min(first + slots, height);
    for (; read < end; ++read) {
      ResampleLine(reader->NextLine(), columns, &scratch->lines[read % slots * stride]);
    }
    for (int64_t k = 0; k < slots; ++k) {  // lines after the last one have weight 0
      scratch->window[k] = &scratch->lines[std::min(first + k, height - 1) % slots * stride];
    }
    BlendLines(scratch->window.data(), rows.weights(y), slots, columns.count(),
               scratch->output.data());
    writer.WriteLine(scratch->output.data(), y, out);
  }
}

}  // namespace

ImageTransform::ImageTransform(const ImageOptions& options)
    : options_(Checked(options)), writer_(options) {}

std::array<int64_t, 3> ImageTransform::shape() const {
  if (options_.layout == PixelLayout::kNchw) return {3, options_.height, options_.width};
  return {options_.height, options_.width, 3};
}

int64_t ImageTransform::bytes_per_image() const {
  return 3 * options_.height * options_.width * BytesPerValue(options_.type);
}

void ImageTransform::Apply(std::string_view encoded, uint64_t seed, std::byte* out) const {
  Scratch& scratch = ScratchOfThisThread();
  const auto reader = OpenRegion(encoded, options_.kind, &scratch.reader);
  Require(std::max(reader->height(), reader->width()) <= kMaxImageSide, ErrorCode::kDataLoss,
          "an image of {} x {} pixels is too large: height and width may be at most {}",
          reader->height(), reader->width(), kMaxImageSide);
  // The placement is chosen before the image is reduced, so random choices do not depend on how the
  // image is decoded.
  Placement placement = Place(options_, reader->height(), reader->width(), seed);
  const bool reduces = options_.scaled_decoding && reader->reduces();
  const int factor = reduces ? ReductionOf(placement) : 1;
  if (factor > 1) {
    const auto reduced = [&](int64_t size) { return (size + factor - 1) / factor; };
    placement.rows = Reduce(placement.rows, factor, reduced(reader->height()));
    placement.columns = Reduce(placement.columns, factor, reduced(reader->width()));
  }
  scratch.rows.Build(placement.rows, options_.height, kRowGroup, false);
  scratch.columns.Build(placement.columns, options_.width, kColumnGroup, placement.mirrored);
  const ResampleTable &rows = scratch.rows, &columns = scratch.columns;
  // Only pixels that have a weight in the tables are decoded.
  const Region region{rows.low(), columns.low(), rows.high() - rows.low(),
                      columns.high() - columns.low()};
  reader->Begin(region, factor, LinePadding(columns));
  Resample(reader.get(), writer_, &scratch, out);
  reader->Finish();
}

void ImageTransform::ApplyAll(std::span<const std::string_view> encoded,
                              std::span<const uint64_t> seeds, int threads, std::byte* out,
                              std::vector<bool>* failed) const {
  Require(encoded.size() == seeds.size(), ErrorCode::kInvalidArgument,
          "{} images have {} seeds: give one seed per image", encoded.size(), seeds.size());
  // `lost` contains bytes instead of bits, because threads write adjacent elements.
  std::vector<uint8_t> lost(encoded.size(), 0);
  ForEach(static_cast<int64_t>(encoded.size()), threads, [&](int64_t i) {
    std::byte* image = out + i * bytes_per_image();
    try {
      Apply(encoded[i], seeds[i], image);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDataLoss) throw;
      std::memset(image, 0, bytes_per_image());
      lost[i] = 1;
    }
  });
  failed->assign(lost.begin(), lost.end());
}

}  // namespace hearth::image
