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

// Memory that all readers of a thread reuse.
struct ReaderMemory {
  std::vector<uint8_t> line;
  Image image;  // used for PNG files
};

// Reads a rectangle of an encoded image, line by line in the order red-green-blue, and decodes as
// little of the file as possible. Not thread-safe. All functions throw kDataLoss like DecodeImage.
class RegionReader {
 public:
  virtual ~RegionReader() = default;

  // The size of the whole image.
  int64_t height() const { return height_; }
  int64_t width() const { return width_; }
  // Returns true if Begin() supports a factor above 1.
  virtual bool reduces() const = 0;

  // Must be called once, before NextLine(). `region` refers to the image reduced by `factor` (1, 2,
  // 4 or 8), whose sides are rounded up. After the end of each line that NextLine() returns,
  // `padding` bytes are readable.
  virtual void Begin(const Region& region, int factor, int64_t padding) = 0;
  // Returns region.width * 3 bytes, which are valid until the next call. May be called at most
  // region.height times.
  virtual const uint8_t* NextLine() = 0;
  // Must be called after the last line. Checks that the file is complete, even outside of the
  // region.
  virtual void Finish() = 0;

 protected:
  int64_t height_ = 0, width_ = 0;
};

// Reads the header and returns a reader. `bytes` and `memory` must outlive it.
std::unique_ptr<RegionReader> OpenRegion(std::string_view bytes, ImageKind kind,
                                         ReaderMemory* memory);

}  // namespace hearth::image
