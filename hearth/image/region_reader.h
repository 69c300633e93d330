#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "hearth/image/image.h"
#include "hearth/image/image_options.h"

namespace hearth::image {

// A rectangle of an image, in pixels.
struct Region {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

// Memory that the readers of a thread reuse.
struct ReaderMemory {
  std::vector<uint8_t> line;
  Image image;  // of PNG files
};

// Reads a rectangle of an encoded image line by line, as red-green-blue, decoding as little of the
// file as possible. Not thread-safe. All functions throw kDataLoss like DecodeImage.
class RegionReader {
 public:
  virtual ~RegionReader() = default;

  // Of the whole image.
  int64_t height() const { return height_; }
  int64_t width() const { return width_; }
  // Returns true if Begin() supports a factor above 1.
  virtual bool reduces() const = 0;

  // Call once, before NextLine(): the region is one of the image reduced by `factor` (1, 2, 4 or
  // 8), whose sides are rounded up. `padding` bytes after a line's end are readable.
  virtual void Begin(const Region& region, int factor, int64_t padding) = 0;
  // region.width * 3 bytes, valid until the next call; called at most region.height times.
  virtual const uint8_t* NextLine() = 0;
  // After the last line: checks that the file is complete, whatever the region was.
  virtual void Finish() = 0;

 protected:
  int64_t height_ = 0, width_ = 0;
};

// Reads the header. `bytes` and `memory` must outlive the reader.
std::unique_ptr<RegionReader> OpenRegion(std::string_view bytes, ImageKind kind,
                                         ReaderMemory* memory);

}  // namespace hearth::image
