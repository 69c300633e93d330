#include "hearth/image/png.h"

#include <png.h>

#include <csetjmp>
#include <cstring>

#include "hearth/base/error.h"

namespace hearth::image {
namespace {

// Null-terminated names of chunks that do not affect the pixels. libpng would store them, and
// inflate the compressed ones, up to a thousand with 8 MB each.
constexpr unsigned char kUnread[] =
    "tEXt\0zTXt\0iTXt\0sPLT\0eXIf\0hIST\0tIME\0pCAL\0sCAL\0oFFs\0pHYs\0bKGD";
constexpr int kUnreadCount = sizeof(kUnread) / 5;

// The bytes that libpng has not read yet, and its error message. As in jpeg_decoder.h, an error
// leaves libpng's C frames through longjmp, which must not skip an object with a destructor.
struct Source {
  const char* data;
  size_t left;
  char message[160] = "";
};

void OnPngError(png_structp png, png_const_charp message) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::strncpy(source->message, message, sizeof(source->message) - 1);
  png_longjmp(png, 1);
}

// Suppresses warnings, which libpng would print to stderr. libpng ignores damaged optional chunks,
// even a palette's transparency, as other readers do.
void OnWarning(png_structp, png_const_charp) {}

void ReadBytes(png_structp png, png_bytep to, png_size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->left) png_error(png, "the file ends too early");
  std::memcpy(to, source->data, count);
  source->data += count;
  source->left -= count;
}

class PngDecoder {
 public:
  explicit PngDecoder(std::string_view bytes) : source_{bytes.data(), bytes.size()} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, OnPngError, OnWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      Throw(ErrorCode::kResourceExhausted, "not enough memory for libpng to read a PNG image");
    }
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  bool ReadHeader() {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_read_fn(png_, &source_, ReadBytes);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, kUnread, kUnreadCount);
    png_read_info(png_, info_);
    return true;
  }

  // Requests 8-bit samples in the color mode from libpng.
  bool ChooseColors(ColorMode mode, bool red_first) {
    if (setjmp(png_jmpbuf(png_))) return false;
    const bool has_color = png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR;
    png_set_strip_16(png_);
    png_set_expand(png_);
    if (mode != ColorMode::kUnchanged) png_set_strip_alpha(png_);
    if (mode == ColorMode::kGray && has_color) {
      // Weights in 1/100,000, equal to those of libjpeg and OpenCV: 0.299 red, 0.587 green, and the
      // rest blue.
      png_set_rgb_to_gray_fixed(png_, PNG_ERROR_ACTION_NONE, 29900, 58700);
    } else if (mode == ColorMode::kColor || has_color || HasAlpha()) {
      png_set_gray_to_rgb(png_);
      if (!red_first) png_set_bgr(png_);
    }
    // This call must precede png_read_update_info, which fixes the size of a row.
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool ReadPixels(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);  // verifies the remaining checksums
    return true;
  }

  int64_t height() const { return png_get_image_height(png_, info_); }
  int64_t width() const { return png_get_image_width(png_, info_); }
  int64_t channels() const { return png_get_channels(png_, info_); }
  size_t row_bytes() const { return png_get_rowbytes(png_, info_); }
  const char* message() const { return source_.message; }

 private:
  bool HasAlpha() const {
    return (png_get_color_type(png_, info_) & PNG_COLOR_MASK_ALPHA) ||
           png_get_valid(png_, info_, PNG_INFO_tRNS);
  }

  Source source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

Image DecodePng(std::string_view bytes, ColorMode mode) {
  Image image;
  DecodePng(bytes, mode, false, &image);
  return image;
}

void DecodePng(std::string_view bytes, ColorMode mode, bool red_first, Image* image) {
  PngDecoder decoder(bytes);
  Require(decoder.ReadHeader(), ErrorCode::kDataLoss,
          "cannot read the header of a PNG image of {} bytes: {}", bytes.size(), decoder.message());
  Require(decoder.height() * decoder.width() <= kMaxImagePixels, ErrorCode::kDataLoss,
          "a PNG image of {} x {} pixels is larger than the limit of {} pixels", decoder.height(),
          decoder.width(), kMaxImagePixels);
  Require(decoder.ChooseColors(mode, red_first), ErrorCode::kDataLoss,
          "a PNG image of {} bytes cannot be decoded: {}", bytes.size(), decoder.message());

  image->height = decoder.height();
  image->width = decoder.width();
  image->channels = decoder.channels();
  const size_t stride = decoder.row_bytes();
  Require(stride == static_cast<size_t>(image->width * image->channels), ErrorCode::kInternal,
          "libpng gives rows of {} bytes for {} pixels of {} channels", stride, image->width,
          image->channels);
  image->pixels.resize(image->height * stride);
  // Provides all rows at once, because an interlaced image is read in several passes over them.
  std::vector<png_bytep> rows(image->height);
  for (int64_t y = 0; y < image->height; ++y) rows[y] = image->pixels.data() + y * stride;
  Require(decoder.ReadPixels(rows.data()), ErrorCode::kDataLoss,
          "a PNG image of {} x {} pixels cannot be decoded: {}", image->height, image->width,
          decoder.message());
}

}  // namespace hearth::image
