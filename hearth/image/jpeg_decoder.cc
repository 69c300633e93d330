#include "hearth/image/jpeg_decoder.h"

// Defines the codes of libjpeg's warnings, two of which mean missing data.
#include <jerror.h>

#include "hearth/base/error.h"
#include "hearth/image/image.h"

namespace hearth::image {
namespace {

// Limits for progressive files, which may refine all pixels in any number of scans of a few bytes
// each; a file of 60 KB took a minute to decode. Typical files have about ten scans. An image of
// the largest size may have 32 scans.
constexpr int kMaxScans = 500;
constexpr int64_t kMaxScannedPixels = kMaxImagePixels * 32;

}  // namespace

void JpegDecoder::OnError(j_common_ptr info) {
  auto* manager = reinterpret_cast<ErrorManager*>(info->err);
  manager->base.format_message(info, manager->message);
  std::longjmp(manager->escape, 1);
}

void JpegDecoder::OnMessage(j_common_ptr info, int level) {
  auto* manager = reinterpret_cast<ErrorManager*>(info->err);
  const int code = manager->base.msg_code;
  // Other warnings (stray bytes between markers, unusual versions) are about data that does not
  // affect the pixels.
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) manager->cut_short = true;
}

// libjpeg calls this before each step of reading a file with several scans.
void JpegDecoder::OnProgress(j_common_ptr info) {
  auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  const int64_t scans = decompress->input_scan_number;
  const int64_t pixels = int64_t{decompress->image_height} * decompress->image_width;
  // The work is the number of scans times the number of pixels; it does not depend on the file's
  // size.
  if (scans <= kMaxScans && scans * pixels <= kMaxScannedPixels) return;
  auto* manager = reinterpret_cast<ErrorManager*>(info->err);
  std::snprintf(manager->message, sizeof(manager->message),
                "it has more than %lld scans; no image needs that many",
                static_cast<long long>(scans - 1));
  std::longjmp(manager->escape, 1);
}

JpegDecoder::JpegDecoder() {
  info_.err = jpeg_std_error(&errors_.base);
  errors_.base.error_exit = OnError;
  errors_.base.emit_message = OnMessage;
}

bool JpegDecoder::ReadHeader(std::string_view bytes) {
  if (setjmp(errors_.escape)) return false;
  jpeg_create_decompress(&info_);
  // The members of info_ must be set after jpeg_create_decompress, which clears this structure.
  progress_.progress_monitor = OnProgress;
  info_.progress = &progress_;
  jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info_, TRUE);
  return true;
}

bool JpegDecoder::Start() {
  if (setjmp(errors_.escape)) return false;
  jpeg_start_decompress(&info_);
  return true;
}

bool JpegDecoder::CropColumns(int64_t* left, int64_t width) {
  if (setjmp(errors_.escape)) return false;
  auto offset = static_cast<JDIMENSION>(*left);
  auto count = static_cast<JDIMENSION>(width);
  jpeg_crop_scanline(&info_, &offset, &count);
  *left = offset;
  return true;
}

bool JpegDecoder::SkipLines(int64_t count) {
  if (setjmp(errors_.escape)) return false;
  if (count > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(count));
  return true;
}

bool JpegDecoder::ReadLine(uint8_t* line) {
  if (setjmp(errors_.escape)) return false;
  JSAMPROW row = line;
  jpeg_read_scanlines(&info_, &row, 1);
  return true;
}

bool JpegDecoder::Finish() {
  if (setjmp(errors_.escape)) return false;
  jpeg_finish_decompress(&info_);
  return true;
}

void ReadJpegHeader(std::string_view bytes, JpegDecoder* decoder) {
  Require(decoder->ReadHeader(bytes), ErrorCode::kDataLoss,
          "cannot read the header of a JPEG image of {} bytes: {}", bytes.size(),
          decoder->message());
  Require(decoder->height() * decoder->width() <= kMaxImagePixels, ErrorCode::kDataLoss,
          "a JPEG image of {} x {} pixels is larger than the limit of {} pixels", decoder->height(),
          decoder->width(), kMaxImagePixels);
}

void RequireJpeg(bool read, const JpegDecoder& decoder) {
  Require(read, ErrorCode::kDataLoss, "a JPEG image of {} x {} pixels cannot be decoded: {}",
          decoder.height(), decoder.width(), decoder.message());
}

void RequireWholeJpeg(std::string_view bytes, const JpegDecoder& decoder) {
  Require(!decoder.cut_short(), ErrorCode::kDataLoss,
          "a JPEG image of {} x {} pixels ends too early: it is incomplete after {} bytes",
          decoder.height(), decoder.width(), bytes.size());
}

void InkToColors(const uint8_t* ink, int64_t count, bool inverted, bool red_first,
                 uint8_t* colors) {
  for (int64_t i = 0; i < count; ++i, ink += 4, colors += 3) {
    const int black = inverted ? ink[3] : 255 - ink[3];
    uint8_t light[3];
    for (int c = 0; c < 3; ++c) {
      light[c] = static_cast<uint8_t>((inverted ? ink[c] : 255 - ink[c]) * black / 255);
    }
    for (int c = 0; c < 3; ++c) colors[c] = light[red_first ? c : 2 - c];
  }
}

}  // namespace hearth::image
