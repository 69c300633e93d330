#include "hearth/image/jpeg.h"

#include "hearth/base/error.h"
#include "hearth/image/jpeg_decoder.h"

namespace hearth::image {
namespace {

void ChooseColors(ColorMode mode, JpegDecoder* decoder, Image* image) {
  if (mode == ColorMode::kGray || (mode == ColorMode::kUnchanged && decoder->is_gray())) {
    decoder->set_color_space(JCS_GRAYSCALE);
    image->channels = 1;
  } else if (decoder->is_cmyk()) {
    decoder->set_color_space(JCS_CMYK);
    image->channels = 4;
  } else {
    decoder->set_color_space(JCS_EXT_BGR);
    image->channels = 3;
  }
}

bool ReadPixels(JpegDecoder* decoder, Image* image) {
  if (!decoder->Start()) return false;
  uint8_t* line = image->pixels.data();
  for (int64_t y = 0; y < image->height; ++y, line += image->width * image->channels) {
    if (!decoder->ReadLine(line)) return false;
  }
  return decoder->Finish();
}

}  // namespace

Image DecodeJpeg(std::string_view bytes, ColorMode mode) {
  JpegDecoder decoder;
  ReadJpegHeader(bytes, &decoder);
  // libjpeg does not convert CMYK to gray, and these files are too rare to convert them here.
  Require(!(decoder.is_cmyk() && mode == ColorMode::kGray), ErrorCode::kDataLoss,
          "CMYK JPEG images cannot be read as gray; convert the file to RGB");
  Image image{decoder.height(), decoder.width(), 3, {}};
  ChooseColors(mode, &decoder, &image);
  image.pixels.resize(image.height * image.width * image.channels);
  RequireJpeg(ReadPixels(&decoder, &image), decoder);
  // libjpeg replaces missing data with gray and only warns. So reading all lines does not prove
  // that the file is complete.
  RequireWholeJpeg(bytes, decoder);
  if (image.channels != 4) return image;
  InkToColors(image.pixels.data(), image.height * image.width, decoder.has_adobe_marker(), false,
              image.pixels.data());
  image.channels = 3;
  image.pixels.resize(image.height * image.width * image.channels);
  return image;
}

}  // namespace hearth::image
