#include "hearth/image/encode.h"

#include <png.h>

#include <algorithm>
#include <cctype>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

#include "hearth/base/error.h"

namespace hearth::image {
namespace {

// libjpeg's error handler and its state. As in jpeg_decoder.h, an error leaves libjpeg's C frames
// through longjmp, which must not skip an object with a destructor.
struct CompressErrors {
  jpeg_error_mgr base;
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX] = "";
};

void OnCompressError(j_common_ptr info) {
  auto* manager = reinterpret_cast<CompressErrors*>(info->err);
  manager->base.format_message(info, manager->message);
  std::longjmp(manager->escape, 1);
}

// Uses only plain C types, because it calls setjmp. The caller must free `buffer`, also after an
// error.
bool Compress(const Image& image, int quality, CompressErrors* errors, unsigned char** buffer,
              unsigned long* size) {
  jpeg_compress_struct info{};
  info.err = jpeg_std_error(&errors->base);
  errors->base.error_exit = OnCompressError;
  if (setjmp(errors->escape)) {
    jpeg_destroy_compress(&info);
    return false;
  }
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, buffer, size);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.input_components = static_cast<int>(image.channels);
  // Pixels are in OpenCV's order, which Caffe's models expect. JCS_EXT_BGR is an extension of
  // libjpeg-turbo.
  info.in_color_space = image.channels == 1   ? JCS_GRAYSCALE
                        : image.channels == 3 ? JCS_EXT_BGR
                                              : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  const int64_t stride = image.width * image.channels;
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(image.pixels.data() + info.next_scanline * stride);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return true;
}

void RequireImage(const Image& image, const char* type) {
  const bool has_colors = image.channels == 1 || image.channels == 3 || image.channels == 4;
  Require(has_colors && image.height > 0 && image.width > 0, ErrorCode::kInvalidArgument,
          "an image of {} x {} pixels and {} channels cannot be a {} file", image.height,
          image.width, image.channels, type);
}

}  // namespace

std::string EncodeJpeg(const Image& image, int quality) {
  RequireImage(image, "JPEG");
  CompressErrors errors;
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  const bool done = Compress(image, quality, &errors, &buffer, &size);
  const std::string bytes = done ? std::string(reinterpret_cast<char*>(buffer), size) : "";
  std::free(buffer);
  Require(done, ErrorCode::kInvalidArgument, "cannot write a JPEG file of {} x {} pixels: {}",
          image.height, image.width, errors.message);
  return bytes;
}

std::string EncodePng(const Image& image) {
  RequireImage(image, "PNG");
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = image.channels == 1   ? PNG_FORMAT_GRAY
               : image.channels == 3 ? PNG_FORMAT_BGR
                                     : PNG_FORMAT_BGRA;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string bytes(size, '\0');
  const bool done =
      png_image_write_to_memory(&png, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr);
  Require(done, ErrorCode::kInvalidArgument, "cannot write a PNG file of {} x {} pixels: {}",
          image.height, image.width, png.message);
  bytes.resize(size);
  // Removes the sRGB chunk, because the color space of the pixels is unknown. With the chunk,
  // libpng would convert colors to gray by luminance. The chunk has 4 bytes of length, 4 of type, 1
  // of data and 4 of checksum.
  const size_t chunk = bytes.find("sRGB");
  return chunk == std::string::npos ? bytes : bytes.erase(chunk - 4, 4 + 4 + 1 + 4);
}

std::string EncodeImage(const Image& image, std::string_view type) {
  std::string name(type.substr(type.starts_with('.') ? 1 : 0));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name == "jpg" || name == "jpeg") return EncodeJpeg(image);
  Require(name == "png", ErrorCode::kInvalidArgument,
          "images cannot be encoded as '{}'; use jpg or png", type);
  return EncodePng(image);
}

}  // namespace hearth::image
