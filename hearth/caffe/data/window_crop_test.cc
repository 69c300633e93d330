#include "hearth/caffe/data/window_crop.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace hearth::caffe {
namespace {

constexpr int kImageHeight = 20, kImageWidth = 30;

// Computes the placement independently, by tracing each pixel of the square back to the image.
bool ShowsImage(const ImageWindow& window, const WindowCrop& crop, int64_t x, int64_t y) {
  const double context =
      static_cast<double>(crop.crop_size) / (crop.crop_size - 2.0 * crop.context_pad);
  double half_width = (window.x2 - window.x1 + 1) / 2.0;
  double half_height = (window.y2 - window.y1 + 1) / 2.0;
  const double centre_x = window.x1 + half_width, centre_y = window.y1 + half_height;
  if (crop.square) half_width = half_height = std::max(half_width, half_height);
  const auto trace = [&](int64_t at, double centre, double half) {
    const double first = std::round(centre - half * context);
    const double last = std::round(centre + half * context);
    return first + (at + 0.5) * (last - first + 1) / crop.crop_size;
  };
  const double px = trace(x, centre_x, half_width), py = trace(y, centre_y, half_height);
  return px >= 0 && px < kImageWidth && py >= 0 && py < kImageHeight;
}

TEST(PlaceWindow, FillsTheSquareWhereTheImageIs) {
  const WindowList::Image image{"", 3, kImageHeight, kImageWidth};
  for (const ImageWindow& window :
       {ImageWindow{0, 1, 5, 4, 14, 13}, ImageWindow{0, 1, 0, 0, 9, 5},
        ImageWindow{0, 1, 20, 10, 29, 19}, ImageWindow{0, 1, 2, 12, 27, 19}}) {
    for (const WindowCrop& crop :
         {WindowCrop{24, 4, false}, WindowCrop{24, 0, true}, WindowCrop{24, 4, true}}) {
      const WindowPlacement placement = PlaceWindow(window, image, crop, false);
      EXPECT_GE(placement.x1, 0);
      EXPECT_LT(placement.x2, kImageWidth);
      EXPECT_GE(placement.y1, 0);
      EXPECT_LT(placement.y2, kImageHeight);
      int wrong = 0;
      for (int64_t y = 0; y < 24; ++y) {
        for (int64_t x = 0; x < 24; ++x) {
          const bool filled = x >= placement.left && x < placement.left + placement.width &&
                              y >= placement.top && y < placement.top + placement.height;
          wrong += filled != ShowsImage(window, crop, x, y);
        }
      }
      EXPECT_LE(wrong, 24) << "rounding may move one border by a pixel";
    }
  }
}

TEST(PlaceWindow, KeepsThePlainWindowWithoutContext) {
  const WindowPlacement placement =
      PlaceWindow({0, 1, 3, 4, 12, 8}, {"", 3, kImageHeight, kImageWidth}, {10, 0, false}, false);
  EXPECT_THAT(
      (std::vector<int64_t>{placement.x1, placement.y1, placement.x2, placement.y2, placement.left,
                            placement.top, placement.width, placement.height}),
      testing::ElementsAre(3, 4, 12, 8, 0, 0, 10, 10));
}

TEST(PlaceWindow, MirrorsThePadding) {
  const ImageWindow at_left{0, 1, 0, 5, 9, 14};
  const WindowList::Image image{"", 3, kImageHeight, kImageWidth};
  const WindowCrop crop{20, 5, false};
  const WindowPlacement plain = PlaceWindow(at_left, image, crop, false);
  const WindowPlacement mirrored = PlaceWindow(at_left, image, crop, true);
  EXPECT_GT(plain.left, 0);
  EXPECT_EQ(mirrored.left, 0);
  EXPECT_EQ(plain.width, mirrored.width);
}

}  // namespace
}  // namespace hearth::caffe
