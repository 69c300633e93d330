// Reads a JPEG file with libjpeg: first the header, then all pixels or a rectangle, line by line.
// Not thread-safe. Functions return false if libjpeg reports an error; message() then returns its
// text.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include <jpeglib.h>

namespace hearth::image {

// A decoder of one JPEG file. libjpeg's error function must not return, and the only way out of its
// C frames is longjmp. So functions that call setjmp must not contain an object with a destructor.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // `bytes` must outlive the decoder.
  bool ReadHeader(std::string_view bytes);

  // Call this after ReadHeader() and before Start(). CMYK files need JCS_CMYK.
  void set_color_space(J_COLOR_SPACE space) { info_.out_color_space = space; }
  // Sets the factor by which the size is divided, rounding up: 1, 2, 4 or 8.
  void set_reduction(int factor) {
    info_.scale_num = 1;
    info_.scale_denom = factor;
  }

  // Starts decoding. Call it after the setters and before the functions below.
  bool Start();
  // Decodes only the columns [left, left + width) and some adjacent ones, because blocks are
  // decoded as a whole. Sets *left to the column of the first pixel in a line. Lines then have
  // line_width() pixels.
  bool CropColumns(int64_t* left, int64_t width);
  bool SkipLines(int64_t count);
  bool ReadLine(uint8_t* line);
  // Reads the rest of the file, so that cut_short() is valid for the whole file.
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
  // Returns true if data is missing in the file for the pixels read so far.
  bool cut_short() const { return errors_.cut_short; }
  const char* message() const { return errors_.message; }

 private:
  // libjpeg's error handler and its state.
  struct ErrorManager {
    jpeg_error_mgr base;  // must be first, because libjpeg passes a pointer to it
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

// These functions throw kDataLoss with the reason. ReadJpegHeader throws if the header is damaged
// or the image is larger than kMaxImagePixels, RequireJpeg if `read` is false, and RequireWholeJpeg
// if some of the pixels read are missing in `bytes`.
void ReadJpegHeader(std::string_view bytes, JpegDecoder* decoder);
void RequireJpeg(bool read, const JpegDecoder& decoder);
void RequireWholeJpeg(std::string_view bytes, const JpegDecoder& decoder);

// Converts pixels of cyan, magenta, yellow and black to three colors, which may overwrite them.
// Adobe writes CMYK inverted, so that 255 means no ink.
void InkToColors(const uint8_t* ink, int64_t count, bool inverted, bool red_first, uint8_t* colors);

}  // namespace hearth::image
