// Reads a JPEG file by libjpeg: the header, then all pixels or a rectangle line by line. Not
// thread-safe. Functions return false if libjpeg reports an error; message() has its text.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include <jpeglib.h>

namespace hearth::image {

// libjpeg's error function must not return. The only way out of its C frames is longjmp, so
// functions that call setjmp have no object with a destructor.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // The bytes must outlive the decoder.
  bool ReadHeader(std::string_view bytes);

  // After ReadHeader(), before the first line. CMYK files need JCS_CMYK.
  void set_color_space(J_COLOR_SPACE space) { info_.out_color_space = space; }
  // Decodes to 1/factor of the size, rounded up: 1, 2, 4 or 8.
  void set_reduction(int factor) {
    info_.scale_num = 1;
    info_.scale_denom = factor;
  }

  // After these, lines can be read.
  bool Start();
  // Decodes only the columns [left, left + width) and, since blocks are decoded whole, some
  // adjacent ones: *left becomes the column of a line's first pixel. Lines then have line_width()
  // pixels.
  bool CropColumns(int64_t* left, int64_t width);
  bool SkipLines(int64_t count);
  bool ReadLine(uint8_t* line);
  // Reads the rest of the file, so that cut_short() is right.
  bool Finish();

  int64_t height() const { return info_.image_height; }
  int64_t width() const { return info_.image_width; }
  int64_t line_width() const { return info_.output_width; }
  int64_t line_count() const { return info_.output_height; }
  int64_t next_line() const { return info_.output_scanline; }
  bool is_gray() const { return info_.num_components == 1; }
  bool is_cmyk() const {
    return info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
  }
  bool has_adobe_marker() const { return info_.saw_Adobe_marker; }
  // Returns true if pixels read so far are missing in the file.
  bool cut_short() const { return errors_.cut_short; }
  const char* message() const { return errors_.message; }

 private:
  // Error handler of libjpeg, with its state.
  struct ErrorManager {
    jpeg_error_mgr base;  // first: libjpeg passes back a pointer to it
    std::jmp_buf escape;
    bool cut_short = false;
    char message[JMSG_LENGTH_MAX] = "";
  };

  static void OnError(j_common_ptr info);
  static void OnMessage(j_common_ptr info, int level);
  static void OnProgress(j_common_ptr info);

  ErrorManager errors_;
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
};

// All throw kDataLoss with the reason: for a damaged header or an image larger than
// kMaxImagePixels; if `read` is false; if the pixels read are not all in `bytes`.
void ReadJpegHeader(std::string_view bytes, JpegDecoder* decoder);
void RequireJpeg(bool read, const JpegDecoder& decoder);
void RequireWholeJpeg(std::string_view bytes, const JpegDecoder& decoder);

// Converts pixels of cyan, magenta, yellow and black to three colors, which may overwrite them.
// Adobe writes CMYK inverted, so that 255 means no ink.
void InkToColors(const uint8_t* ink, int64_t count, bool inverted, bool red_first, uint8_t* colors);

}  // namespace hearth::image
