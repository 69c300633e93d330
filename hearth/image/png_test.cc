#include "hearth/image/png.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <fstream>

#include "hearth/base/error.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string PngError(std::string_view bytes) {
  try {
    DecodePng(bytes, ColorMode::kColor);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    return error.message();
  }
  return "";
}

TEST(DecodePng, DecodesToExactBlueGreenRed) {
  const Image image = GradientImage(5, 7, 3);
  const Image decoded = DecodePng(EncodePng(image), ColorMode::kColor);
  EXPECT_EQ(decoded.height, 5);
  EXPECT_EQ(decoded.width, 7);
  EXPECT_EQ(decoded.pixels, image.pixels);
}

TEST(DecodePng, KeepsGrayUnlessColorIsRequested) {
  const Image image = GradientImage(2, 2, 1);
  EXPECT_EQ(DecodePng(EncodePng(image), ColorMode::kUnchanged).pixels, image.pixels);
  EXPECT_EQ(DecodePng(EncodePng(image), ColorMode::kGray).pixels, image.pixels);
  const uint8_t first = image.pixels[0], second = image.pixels[1];
  EXPECT_THAT(DecodePng(EncodePng({1, 2, 1, {first, second}}), ColorMode::kColor).pixels,
              ElementsAre(first, first, first, second, second, second));
}

TEST(DecodePng, WeightsColorsForGray) {
  // The weights of blue, green and red are 0.114, 0.587 and 0.299.
  const Image image{1, 3, 3, {200, 0, 0, 0, 200, 0, 0, 0, 200}};
  EXPECT_THAT(DecodePng(EncodePng(image), ColorMode::kGray).pixels, ElementsAre(22, 117, 59));
}

TEST(DecodePng, DropsTransparencyUnlessUnchangedIsRequested) {
  const Image image{1, 1, 4, {10, 20, 30, 128}};
  EXPECT_THAT(DecodePng(EncodePng(image), ColorMode::kColor).pixels, ElementsAre(10, 20, 30));
  EXPECT_THAT(DecodePng(EncodePng(image), ColorMode::kUnchanged).pixels,
              ElementsAre(10, 20, 30, 128));
}

TEST(DecodePng, RejectsATruncatedFileOrAWrongChecksum) {
  std::string bytes = EncodePng(GradientImage(9, 9, 3));
  EXPECT_EQ(PngError(std::string_view(bytes).substr(0, bytes.size() - 30)),
            "a PNG image of 9 x 9 pixels cannot be decoded: the file ends too early");
  bytes[bytes.find("IDAT") + 10] ^= 1;
  EXPECT_THAT(PngError(bytes), HasSubstr("PNG image of 9 x 9 pixels cannot be decoded: "));
}

void AppendBigEndian(uint32_t value, std::string* bytes) {
  for (int shift = 24; shift >= 0; shift -= 8) *bytes += static_cast<char>(value >> shift);
}

std::string Chunk(const std::string& type, const std::string& body) {
  std::string bytes;
  AppendBigEndian(static_cast<uint32_t>(body.size()), &bytes);
  const std::string checked = type + body;
  bytes += checked;
  const auto* data = reinterpret_cast<const Bytef*>(checked.data());
  AppendBigEndian(static_cast<uint32_t>(crc32(0, data, static_cast<uInt>(checked.size()))), &bytes);
  return bytes;
}

std::string Deflated(const std::string& plain) {
  uLongf size = compressBound(plain.size());
  std::string bytes(size, '\0');
  compress2(reinterpret_cast<Bytef*>(bytes.data()), &size,
            reinterpret_cast<const Bytef*>(plain.data()), plain.size(), 9);
  return bytes.substr(0, size);
}

// The peak memory of this process since the last call, in MiB.
int64_t PeakMegabytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  int64_t peak = 0;
  while (status >> word) {
    if (word == "VmHWM:") status >> peak;
  }
  std::ofstream("/proc/self/clear_refs") << 5;
  return peak >> 10;
}

TEST(DecodePng, AllocatesNothingForChunksThatDoNotAffectThePixels) {
  const Image image = GradientImage(4, 4, 3);
  const std::string plain = EncodePng(image);
  constexpr size_t kHeaderEnd = 33;  // signature and IHDR
  // Each of these chunks inflates to 7.9 MB.
  const std::string text = Deflated(std::string(7900000, 'x'));
  const std::string key("k\0\0", 3);
  std::string bytes = plain.substr(0, kHeaderEnd);
  for (int i = 0; i < 50; ++i) {
    bytes += Chunk("zTXt", key + text);
    bytes += Chunk("iTXt", std::string("k\0\1\0\0\0", 6) + text);
  }
  bytes += Chunk("tEXt", key + std::string(7900000, 'x'));
  bytes += plain.substr(kHeaderEnd);
  PeakMegabytes();
  const int64_t before = PeakMegabytes();
  EXPECT_EQ(DecodePng(bytes, ColorMode::kColor).pixels, image.pixels);
  EXPECT_LT(PeakMegabytes() - before, 100);
}

TEST(DecodePng, RejectsAHugeImageBeforeAllocating) {
  std::string bytes = EncodePng(GradientImage(2, 2, 3));
  const size_t header = bytes.find("IHDR");
  bytes[header + 6] = bytes[header + 10] = '\x40';  // adds 16384 rows and columns
  const uint32_t checksum = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data() + header), 4 + 13));
  for (int i = 0; i < 4; ++i) bytes[header + 17 + i] = static_cast<char>(checksum >> (24 - 8 * i));
  EXPECT_EQ(PngError(bytes),
            "a PNG image of 16386 x 16386 pixels is larger than the limit of 67108864 pixels");
}

// A PNG file with these chunks before the pixels. Each row starts with the number of its filter.
std::string PngOf(uint32_t width, uint32_t height, char depth, char color,
                  const std::string& chunks, const std::string& rows, char interlaced = 0) {
  std::string header;
  AppendBigEndian(width, &header);
  AppendBigEndian(height, &header);
  header += {depth, color, 0, 0, interlaced};
  return "\x89PNG\r\n\x1a\n" + Chunk("IHDR", header) + chunks + Chunk("IDAT", Deflated(rows)) +
         Chunk("IEND", "");
}

TEST(DecodePng, KeepsTheUpperByteOf16Bits) {
  const std::string rows("\0\x12\xff\xff\0\0\xff", 7);  // samples 0x12ff, 0xff00, 0x00ff
  const std::string gray = PngOf(3, 1, 16, 0, "", rows);
  EXPECT_THAT(DecodePng(gray, ColorMode::kUnchanged).pixels, ElementsAre(0x12, 0xff, 0x00));
  EXPECT_EQ(DecodePng(gray, ColorMode::kUnchanged).channels, 1);
}

TEST(DecodePng, ExpandsSamplesOfLessThanAByte) {
  // The samples are 1 0 1 1 and 0 1 2 3, starting at the most significant bit.
  EXPECT_THAT(DecodePng(PngOf(4, 1, 1, 0, "", std::string("\0\xb0", 2)), ColorMode::kGray).pixels,
              ElementsAre(255, 0, 255, 255));
  EXPECT_THAT(DecodePng(PngOf(4, 1, 2, 0, "", std::string("\0\x1b", 2)), ColorMode::kGray).pixels,
              ElementsAre(0, 85, 170, 255));
}

TEST(DecodePng, ExpandsAPaletteWithItsTransparency) {
  const std::string palette = Chunk("PLTE", "\x0a\x14\x1e\x28\x32\x3c");  // red, green, blue
  const std::string rows("\0\1\0", 3);
  const std::string opaque = PngOf(2, 1, 8, 3, palette, rows);
  EXPECT_THAT(DecodePng(opaque, ColorMode::kUnchanged).pixels, ElementsAre(60, 50, 40, 30, 20, 10));
  const std::string clear = PngOf(2, 1, 8, 3, palette + Chunk("tRNS", "\x80"), rows);
  EXPECT_THAT(DecodePng(clear, ColorMode::kUnchanged).pixels,
              ElementsAre(60, 50, 40, 255, 30, 20, 10, 128));
  EXPECT_THAT(DecodePng(clear, ColorMode::kColor).pixels, ElementsAre(60, 50, 40, 30, 20, 10));
  Image red_first;
  DecodePng(opaque, ColorMode::kColor, true, &red_first);
  EXPECT_THAT(red_first.pixels, ElementsAre(40, 50, 60, 10, 20, 30));
}

TEST(DecodePng, RejectsAPaletteFileWithoutItsPalette) {
  EXPECT_THAT(PngError(PngOf(2, 1, 8, 3, "", std::string("\0\1\0", 3))), HasSubstr("PNG image of"));
}

TEST(DecodePng, RejectsInvalidHeaders) {
  const std::string rows("\0\0", 2);
  EXPECT_EQ(PngError(PngOf(1, 1, 8, 0, "", rows)), "");
  for (const std::string& bytes :
       {PngOf(0, 1, 8, 0, "", rows), PngOf(1, 0, 8, 0, "", rows), PngOf(1, 1, 3, 0, "", rows),
        PngOf(1, 1, 8, 5, "", rows), PngOf(1, 1, 8, 0, "", rows, 2),
        PngOf(uint32_t{1} << 31, 1, 8, 0, "", rows)}) {
    EXPECT_THAT(PngError(bytes), HasSubstr(fmt::format("PNG image of {} bytes", bytes.size())));
  }
}

TEST(DecodePng, RejectsFewerRowsThanTheHeaderHas) {
  EXPECT_THAT(PngError(PngOf(2, 2, 8, 0, "", std::string("\0\1\2", 3))),
              HasSubstr("PNG image of 2 x 2 pixels cannot be decoded: "));
  EXPECT_THAT(PngError(PngOf(2, 1, 8, 0, "", std::string("\x9\1\2", 3))),
              HasSubstr("PNG image of 1 x 2 pixels cannot be decoded: "))
      << "an unknown filter";
}

TEST(DecodePng, RejectsEveryTruncation) {
  const std::string whole = EncodePng(GradientImage(3, 3, 3));
  ASSERT_EQ(PngError(whole), "");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(PngError(std::string_view(whole).substr(0, size)), "") << size;
  }
}

TEST(DecodePng, ReusedMemoryHasNothingOfTheImageBefore) {
  Image image;
  DecodePng(EncodePng(GradientImage(9, 9, 3)), ColorMode::kColor, false, &image);
  const Image small = GradientImage(2, 3, 1);
  DecodePng(EncodePng(small), ColorMode::kUnchanged, false, &image);
  EXPECT_EQ(image.pixels, small.pixels);
  EXPECT_EQ(image.channels, 1);
}

}  // namespace
}  // namespace hearth::image
