// Test helpers: JPEG files that EncodeJpeg() cannot write.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include <jpeglib.h>

#include "hearth/image/image.h"

namespace hearth::image {

// Encodes an image as JPEG. Calls `choose(&info)` before it writes the first line. libjpeg reports
// no errors for the images in tests.
template <typename Choose>
std::string EncodeJpegAs(const Image& image, Choose choose) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.input_components = static_cast<int>(image.channels);
  info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_EXT_BGR;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  choose(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    const size_t row = info.next_scanline * image.width * image.channels;
    auto* pixels = const_cast<JSAMPLE*>(&image.pixels[row]);
    jpeg_write_scanlines(&info, &pixels, 1);
  }
  jpeg_finish_compress(&info);
  std::string bytes(reinterpret_cast<char*>(buffer), size);
  jpeg_destroy_compress(&info);
  std::free(buffer);
  return bytes;
}

inline std::string ProgressiveJpeg(const Image& image) {
  return EncodeJpegAs(image, [](j_compress_ptr info) { jpeg_simple_progression(info); });
}

// A file with one color sample for `across` x `down` pixels.
inline std::string SampledJpeg(const Image& image, int across, int down) {
  return EncodeJpegAs(image, [&](j_compress_ptr info) {
    info->comp_info[0].h_samp_factor = across;
    info->comp_info[0].v_samp_factor = down;
  });
}

}  // namespace hearth::image
