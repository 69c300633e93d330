#include "hearth/caffe/data/image/jpeg.h"

#include <csetjmp>
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>
// After jpeglib.h: the codes of the warnings that mean missing data.
#include <jerror.h>

#include "hearth/base/error.h"

namespace hearth::caffe {
namespace {

// A progressive file may go over all its pixels in any number of scans, each of a few bytes: 60 KB
// took a minute. The usual ones have about ten. A picture of the largest size may have 32.
constexpr int kMaxScans = 500;
constexpr int64_t kMaxScannedPixels = kMaxImagePixels * 32;

// libjpeg reports errors by a call that must not return. The only way out of its C frames is
// longjmp, so the functions that call setjmp hold no object with a destructor.
struct ErrorManager {
  jpeg_error_mgr base;  // first: libjpeg hands back a pointer to it
  std::jmp_buf escape;
  bool cut_short = false;
  char message[JMSG_LENGTH_MAX] = "";
};

void OnError(j_common_ptr info) {
  auto* manager = reinterpret_cast<ErrorManager*>(info->err);
  manager->base.format_message(info, manager->message);
  std::longjmp(manager->escape, 1);
}

void OnMessage(j_common_ptr info, int level) {
  auto* manager = reinterpret_cast<ErrorManager*>(info->err);
  const int code = manager->base.msg_code;
  // Other warnings (stray bytes between markers, odd versions) leave the pixels whole.
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) manager->cut_short = true;
}

// Called before each step of reading a file of several scans.
void OnProgress(j_common_ptr info) {
  auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  const int64_t scans = decompress->input_scan_number;
  const int64_t pixels = int64_t{decompress->image_height} * decompress->image_width;
  if (scans <= kMaxScans && scans * pixels <= kMaxScannedPixels) return;
  auto* manager = reinterpret_cast<ErrorManager*>(info->err);
  std::snprintf(manager->message, sizeof(manager->message),
                "it has more than %lld scans; no picture needs so many",
                static_cast<long long>(scans - 1));
  std::longjmp(manager->escape, 1);
}

class JpegDecoder {
 public:
  JpegDecoder() {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = OnError;
    errors_.base.emit_message = OnMessage;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  bool ReadHeader(std::string_view bytes) {
    if (setjmp(errors_.escape)) return false;
    jpeg_create_decompress(&info_);
    progress_.progress_monitor = OnProgress;
    info_.progress = &progress_;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  void ChooseColors(ColorMode mode) {
    const bool gray =
        mode == ColorMode::kGray || (mode == ColorMode::kUnchanged && info_.num_components == 1);
    if (gray) {
      info_.out_color_space = JCS_GRAYSCALE;
    } else if (is_cmyk()) {
      info_.out_color_space = JCS_CMYK;
    } else {
      info_.out_color_space = JCS_EXT_BGR;
    }
  }

  bool ReadPixels(uint8_t* pixels, size_t stride) {
    if (setjmp(errors_.escape)) return false;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = pixels + info_.output_scanline * stride;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  int64_t height() const { return info_.image_height; }
  int64_t width() const { return info_.image_width; }
  bool is_cmyk() const {
    return info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
  }
  bool is_gray_output() const { return info_.out_color_space == JCS_GRAYSCALE; }
  bool has_adobe_marker() const { return info_.saw_Adobe_marker; }
  bool cut_short() const { return errors_.cut_short; }
  const char* message() const { return errors_.message; }

 private:
  ErrorManager errors_;
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
};

// Adobe writes CMYK inverted, so that 255 means no ink.
Image CmykToBgr(const Image& cmyk, bool inverted) {
  Image bgr{cmyk.height, cmyk.width, 3, {}};
  const int64_t count = cmyk.height * cmyk.width;
  bgr.pixels.resize(count * 3);
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* ink = &cmyk.pixels[i * 4];
    const int black = inverted ? ink[3] : 255 - ink[3];
    for (int c = 0; c < 3; ++c) {
      const int light = inverted ? ink[c] : 255 - ink[c];
      bgr.pixels[i * 3 + 2 - c] = static_cast<uint8_t>(light * black / 255);
    }
  }
  return bgr;
}

}  // namespace

Image DecodeJpeg(std::string_view bytes, ColorMode mode) {
  JpegDecoder decoder;
  Require(decoder.ReadHeader(bytes), ErrorCode::kDataLoss, "JPEG image of {} bytes: {}",
          bytes.size(), decoder.message());
  Require(decoder.height() * decoder.width() <= kMaxImagePixels, ErrorCode::kDataLoss,
          "JPEG image of {} x {} pixels is larger than the limit of {} pixels", decoder.height(),
          decoder.width(), kMaxImagePixels);
  // libjpeg converts CMYK to no other colours, and grey ink pictures are too rare to do it here.
  Require(!(decoder.is_cmyk() && mode == ColorMode::kGray), ErrorCode::kDataLoss,
          "CMYK JPEG images cannot be read as grey; convert the file to RGB");
  decoder.ChooseColors(mode);

  Image image{decoder.height(), decoder.width(), 3, {}};
  if (decoder.is_gray_output()) image.channels = 1;
  if (decoder.is_cmyk()) image.channels = 4;
  image.pixels.resize(image.height * image.width * image.channels);
  Require(decoder.ReadPixels(image.pixels.data(), image.width * image.channels),
          ErrorCode::kDataLoss, "JPEG image of {} x {} pixels: {}", image.height, image.width,
          decoder.message());
  Require(!decoder.cut_short(), ErrorCode::kDataLoss,
          "JPEG image of {} x {} pixels ends too early: {} bytes do not hold all of it",
          image.height, image.width, bytes.size());
  return decoder.is_cmyk() ? CmykToBgr(image, decoder.has_adobe_marker()) : image;
}

}  // namespace hearth::caffe
