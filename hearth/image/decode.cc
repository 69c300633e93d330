#include "hearth/image/decode.h"

#include "hearth/base/error.h"
#include "hearth/image/jpeg.h"
#include "hearth/image/png.h"

namespace hearth::image {
namespace {

// The first bytes of a file. For JPEG: the start-of-image marker and the first byte of the next
// marker. For PNG: the signature.
constexpr std::string_view kJpegMagic = "\xff\xd8\xff";
constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n";

std::string HexOfFirstBytes(std::string_view bytes) {
  std::string hex;
  for (const unsigned char byte : bytes.substr(0, 4)) hex += fmt::format("{:02x} ", byte);
  if (!hex.empty()) hex.pop_back();
  return hex;
}

}  // namespace

ImageKind KindOf(std::string_view bytes) {
  if (bytes.starts_with(kJpegMagic)) return ImageKind::kJpeg;
  if (bytes.starts_with(kPngMagic)) return ImageKind::kPng;
  Throw(ErrorCode::kDataLoss, "{} bytes that begin with [{}] are neither a JPEG nor a PNG image",
        bytes.size(), HexOfFirstBytes(bytes));
}

Image DecodeImage(std::string_view bytes, ColorMode mode) {
  return KindOf(bytes) == ImageKind::kJpeg ? DecodeJpeg(bytes, mode) : DecodePng(bytes, mode);
}

}  // namespace hearth::image
