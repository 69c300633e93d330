#include "hearth/caffe/data/image/decode.h"

#include "hearth/base/error.h"
#include "hearth/caffe/data/image/jpeg.h"
#include "hearth/caffe/data/image/png.h"

namespace hearth::caffe {
namespace {

constexpr std::string_view kJpegMagic = "\xff\xd8\xff";
constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n";

std::string HexOfFirstBytes(std::string_view bytes) {
  std::string hex;
  for (const unsigned char byte : bytes.substr(0, 4)) hex += fmt::format("{:02x} ", byte);
  if (!hex.empty()) hex.pop_back();
  return hex;
}

}  // namespace

Image DecodeImage(std::string_view bytes, ColorMode mode) {
  if (bytes.starts_with(kJpegMagic)) return DecodeJpeg(bytes, mode);
  if (bytes.starts_with(kPngMagic)) return DecodePng(bytes, mode);
  Throw(ErrorCode::kDataLoss, "{} bytes that begin with [{}] are neither a JPEG nor a PNG image",
        bytes.size(), HexOfFirstBytes(bytes));
}

}  // namespace hearth::caffe
