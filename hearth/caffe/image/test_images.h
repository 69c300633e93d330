// Pictures for tests, and encoders that only tests need.
#pragma once

#include <gtest/gtest.h>
#include <png.h>

#include <cstdio>
#include <string>

#include <jpeglib.h>

#include "hearth/caffe/image/image.h"

namespace hearth::caffe {

// Every pixel and channel differs from its neighbours, smoothly enough for JPEG.
inline Image GradientImage(int64_t height, int64_t width, int64_t channels) {
  Image image{height, width, channels, {}};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        image.pixels.push_back(static_cast<uint8_t>(20 + 7 * y + 3 * x + 40 * c));
      }
    }
  }
  return image;
}

inline std::string EncodePng(const Image& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = image.channels == 1   ? PNG_FORMAT_GRAY
               : image.channels == 3 ? PNG_FORMAT_BGR
                                     : PNG_FORMAT_BGRA;
  png_alloc_size_t size = 0;
  EXPECT_TRUE(png_image_write_to_memory(&png, nullptr, &size, 0, image.pixels.data(), 0, nullptr));
  std::string bytes(size, '\0');
  EXPECT_TRUE(
      png_image_write_to_memory(&png, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr));
  bytes.resize(size);
  // Most files carry no colour space; with one, libpng turns colours into grey by their light.
  const size_t chunk = bytes.find("sRGB");
  return chunk == std::string::npos ? bytes : bytes.erase(chunk - 4, 4 + 4 + 1 + 4);
}

inline std::string EncodeJpeg(const Image& image, int quality = 95) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.input_components = static_cast<int>(image.channels);
  info.in_color_space = image.channels == 1   ? JCS_GRAYSCALE
                        : image.channels == 3 ? JCS_EXT_BGR
                                              : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row =
        const_cast<uint8_t*>(&image.pixels[info.next_scanline * image.width * image.channels]);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string bytes(reinterpret_cast<char*>(buffer), size);
  jpeg_destroy_compress(&info);
  free(buffer);
  return bytes;
}

}  // namespace hearth::caffe
