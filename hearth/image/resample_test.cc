#include "hearth/image/resample.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace hearth::image {
namespace {

AxisPlacement Whole(int64_t size, int64_t out) {
  return {0, size, 0, static_cast<double>(size) / static_cast<double>(out)};
}

std::vector<uint8_t> RandomLine(int64_t pixels, const ResampleTable& table) {
  std::mt19937 random(3);
  std::vector<uint8_t> line(pixels * 3 + LinePadding(table));
  for (uint8_t& value : line) value = static_cast<uint8_t>(random());
  return line;
}

// The same sums in plain integers. Every CPU must compute these values.
uint32_t PixelAt(const uint8_t* line, const ResampleTable& table, int64_t i) {
  uint32_t pixel = 0;
  for (int c = 0; c < 3; ++c) {
    int sum = 1 << 13;
    for (int64_t k = 0; k < table.taps(); ++k) {
      sum += table.weights(i)[k] * line[(table.first(i) + k) * 3 + c];
    }
    pixel |= static_cast<uint32_t>(std::clamp(sum >> 14, 0, 255)) << (8 * c);
  }
  return pixel;
}

TEST(ResampleTable, WeightsAreATriangleAsWideAsAnOutputPixelOnEachSide) {
  ResampleTable table;
  table.Build(Whole(300, 100), 100, kColumnGroup, false);
  EXPECT_EQ(table.taps(), 8);  // six taps, and two zeros that complete the second group
  const int16_t* weights = table.weights(50);  // center 151.5, source pixels 149 to 154
  EXPECT_EQ(table.first(50), 149);
  const double exact[] = {0.5 / 9 * 2, 1.0 / 9 * 2, 1.5 / 9 * 2, 1.0 / 9 * 2, 0.5 / 9 * 2, 0};
  for (int k = 0; k < 6; ++k) EXPECT_NEAR(weights[k] / 16384.0, exact[k], 1.0 / 16384) << k;
}

TEST(ResampleTable, WeightsOfEveryPixelAddUpToOne) {
  ResampleTable table;
  for (const int64_t size : {1, 2, 5, 100, 223, 224, 225, 1000, 8000}) {
    table.Build(Whole(size, 224), 224, kRowGroup, false);
    for (int64_t i = 0; i < 224; ++i) {
      int sum = 0;
      for (int64_t k = 0; k < table.taps(); ++k) sum += table.weights(i)[k];
      ASSERT_EQ(sum, 16384) << size << " " << i;
    }
    EXPECT_EQ(table.low(), 0);
    EXPECT_EQ(table.high(), size);
  }
}

TEST(ResampleTable, WeightsThousandsOfPixelsEvenly) {
  ResampleTable table;
  table.Build(Whole(65500, 1), 1, kColumnGroup, false);
  std::vector<uint8_t> line(65500 * 3 + LinePadding(table));
  for (int64_t i = 0; i < 65500 * 3; ++i) line[i] = static_cast<uint8_t>(i / 3 * 200 / 65500);
  uint32_t out = 0;
  ResampleLine(line.data(), table, &out);
  EXPECT_NEAR(out & 255, 100, 1);
}

TEST(ResampleTable, ReadsOnlyThePixelsOfItsPart) {
  ResampleTable table;
  table.Build({0, 1000, 300, 2}, 100, kColumnGroup, false);
  EXPECT_EQ(table.low(), 299);
  EXPECT_EQ(table.high(), 501);
  EXPECT_EQ(table.first(0), 0);
  table.Build({100, 200, 0, 1}, 100, kColumnGroup, false);
  EXPECT_EQ(table.low(), 100);
  EXPECT_EQ(table.high(), 200);
}

TEST(ResampleLine, ComputesTheWeightedSumsExactly) {
  ResampleTable table;
  std::vector<uint32_t> out(101);
  for (const bool mirrored : {false, true}) {
    for (const int64_t size : {1, 2, 3, 60, 101, 150, 202, 250, 999}) {
      table.Build(Whole(size, 101), 101, kColumnGroup, mirrored);
      const std::vector<uint8_t> line = RandomLine(size, table);
      ResampleLine(line.data(), table, out.data());
      for (int64_t i = 0; i < 101; ++i) ASSERT_EQ(out[i], PixelAt(line.data(), table, i)) << size;
    }
  }
}

TEST(ResampleLine, MirroredComputesTheSamePixelsFromRightToLeft) {
  ResampleTable table;
  for (const int64_t size : {1, 2, 77, 300}) {
    std::vector<uint32_t> plain(50), mirrored(50);
    table.Build(Whole(size, 50), 50, kColumnGroup, false);
    const std::vector<uint8_t> line = RandomLine(size, table);
    ResampleLine(line.data(), table, plain.data());
    table.Build(Whole(size, 50), 50, kColumnGroup, true);
    ResampleLine(line.data(), table, mirrored.data());
    std::reverse(mirrored.begin(), mirrored.end());
    EXPECT_EQ(plain, mirrored) << size;
  }
}

TEST(BlendLines, ComputesTheWeightedSumsExactly) {
  std::mt19937 random(5);
  constexpr int64_t kCount = 21;
  for (const int64_t taps : {2, 4, 6, 74}) {
    std::vector<std::vector<uint32_t>> lines(taps, std::vector<uint32_t>(PaddedPixels(kCount)));
    std::vector<const uint32_t*> views;
    for (auto& line : lines) {
      for (uint32_t& pixel : line) pixel = static_cast<uint32_t>(random());
      views.push_back(line.data());
    }
    std::vector<int16_t> weights(taps, static_cast<int16_t>(16384 / taps));
    weights[0] = static_cast<int16_t>(weights[0] + 16384 % taps);
    std::vector<uint32_t> out(PaddedPixels(kCount));
    BlendLines(views.data(), weights.data(), taps, kCount, out.data());
    for (int64_t i = 0; i < kCount; ++i) {
      for (int shift = 0; shift < 32; shift += 8) {
        int sum = 1 << 13;
        for (int64_t k = 0; k < taps; ++k) {
          sum += weights[k] * static_cast<int>(lines[k][i] >> shift & 255);
        }
        ASSERT_EQ(out[i] >> shift & 255, static_cast<uint32_t>(sum >> 14)) << taps << " " << i;
      }
    }
  }
}

TEST(ResampleTable, UniformLinesKeepTheirLevel) {
  ResampleTable table;
  for (const auto& [size, out] :
       {std::pair<int64_t, int64_t>{1, 16384}, {2, 9}, {9, 2}, {4000, 3}}) {
    table.Build(Whole(size, out), out, kColumnGroup, false);
    for (const int level : {0, 1, 127, 254, 255}) {
      std::vector<uint8_t> line(size * 3 + LinePadding(table), static_cast<uint8_t>(level));
      std::vector<uint32_t> pixels(out);
      ResampleLine(line.data(), table, pixels.data());
      const auto expected = static_cast<uint32_t>(level * 0x010101);
      EXPECT_TRUE(std::all_of(pixels.begin(), pixels.end(),
                              [&](uint32_t pixel) { return pixel == expected; }))
          << size << " to " << out << ", level " << level;
    }
  }
}

TEST(ResampleTable, WeightsAreNotNegativeAndInTheirPart) {
  ResampleTable table;
  for (const bool mirrored : {false, true}) {
    for (const AxisPlacement& axis : {AxisPlacement{5, 6, 0, 0.01},
                                      {0, 3, 0.5, 0.01},
                                      {10, 1000, 0.25, 7.5},
                                      {0, 65500, 0, 500}}) {
      table.Build(axis, 100, kColumnGroup, mirrored);
      EXPECT_EQ(table.count(), 100);
      EXPECT_EQ(table.taps() % kColumnGroup, 0);
      EXPECT_GE(table.low(), axis.low);
      EXPECT_LE(table.high(), axis.high);
      for (int64_t i = 0; i < 100; ++i) {
        ASSERT_GE(table.first(i), 0);
        for (int64_t k = 0; k < table.taps(); ++k) {
          ASSERT_GE(table.weights(i)[k], 0);
          if (table.weights(i)[k] > 0) {
            ASSERT_LT(table.low() + table.first(i) + k, axis.high) << i;
          }
        }
      }
    }
  }
}

TEST(ResampleTable, BuildReplacesALargerTable) {
  ResampleTable reused, fresh;
  reused.Build(Whole(5000, 10), 10, kColumnGroup, true);
  reused.Build(Whole(7, 3), 3, kRowGroup, false);
  fresh.Build(Whole(7, 3), 3, kRowGroup, false);
  ASSERT_EQ(reused.count(), 3);
  ASSERT_EQ(reused.taps(), fresh.taps());
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(reused.first(i), fresh.first(i));
    EXPECT_TRUE(std::equal(reused.weights(i), reused.weights(i) + reused.taps(), fresh.weights(i)));
  }
}

}  // namespace
}  // namespace hearth::image
