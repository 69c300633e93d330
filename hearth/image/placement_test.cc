#include "hearth/image/placement.h"

#include <gmock/gmock.h>

#include <cmath>
#include <tuple>

namespace hearth::image {
namespace {

struct Box {
  int64_t top, left, height, width;
  bool operator==(const Box&) const = default;
};

Box BoxOf(const Placement& p) {
  return {p.rows.low, p.columns.low, p.rows.high - p.rows.low, p.columns.high - p.columns.low};
}

TEST(Place, DependsOnTheSeedAlone) {
  const ImageOptions options;
  EXPECT_EQ(BoxOf(Place(options, 300, 400, 5)), BoxOf(Place(options, 300, 400, 5)));
  EXPECT_NE(BoxOf(Place(options, 300, 400, 5)), BoxOf(Place(options, 300, 400, 6)));
}

// The result must never change, because a run that is resumed with a later release must repeat its
// crops.
TEST(Place, ChoosesTheSameInEveryRelease) {
  const Placement placement = Place({}, 375, 500, 1);
  EXPECT_EQ(BoxOf(placement), (Box{3, 107, 199, 194}));
  EXPECT_EQ(placement.mirrored, false);
}

TEST(Place, AtRandomIsWithinTheLimitsOfAreaAndRatio) {
  int mirrored = 0, wide = 0;
  double area = 0;
  constexpr int kDraws = 2000;
  for (int seed = 0; seed < kDraws; ++seed) {
    const Placement placement = Place({}, 480, 640, seed);
    const Box box = BoxOf(placement);
    ASSERT_GE(box.top, 0);
    ASSERT_GE(box.left, 0);
    ASSERT_LE(box.top + box.height, 480);
    ASSERT_LE(box.left + box.width, 640);
    const double share = static_cast<double>(box.height * box.width) / (480 * 640);
    const double ratio = static_cast<double>(box.width) / static_cast<double>(box.height);
    ASSERT_GE(share, 0.079);
    ASSERT_LE(share, 1.001);
    ASSERT_NEAR(std::log(ratio), 0, std::log(4.0 / 3) + 0.02);
    EXPECT_DOUBLE_EQ(placement.columns.step, static_cast<double>(box.width) / 224);
    area += share;
    wide += ratio > 1;
    mirrored += placement.mirrored;
  }
  // torchvision 0.29 has a mean area of 0.432 and a fraction of 0.578 of wide crops. The mean area
  // is below the middle of its range, and wide crops are more frequent, because large and narrow
  // crops often do not fit and are rejected.
  EXPECT_NEAR(area / kDraws, 0.432, 0.02);
  EXPECT_NEAR(mirrored, kDraws / 2, 100);
  EXPECT_NEAR(wide, kDraws * 0.578, 80);
}

TEST(Place, AtRandomIsTheCenterIfNoCropFits) {
  EXPECT_EQ(BoxOf(Place({}, 10, 10000, 3)), (Box{0, 4993, 10, 13}));
  EXPECT_EQ(BoxOf(Place({}, 10000, 10, 3)), (Box{4993, 0, 13, 10}));
  EXPECT_EQ(BoxOf(Place({}, 1, 1, 3)), (Box{0, 0, 1, 1}));
}

TEST(Place, InTheCenterCropsAnImageWhoseShortSideIs256) {
  ImageOptions options;
  options.crop = CropMode::kCenter;
  options.flip = false;
  const Placement placement = Place(options, 512, 1024, 9);
  EXPECT_FALSE(placement.mirrored);
  EXPECT_DOUBLE_EQ(placement.rows.step, 2);
  EXPECT_DOUBLE_EQ(placement.rows.begin, 32);
  EXPECT_DOUBLE_EQ(placement.columns.step, 2);
  EXPECT_DOUBLE_EQ(placement.columns.begin, 288);
  // The image is resized to 256 x 341 pixels: the long side is rounded down, and the margin of 58.5
  // pixels is rounded to even.
  const Placement uneven = Place(options, 375, 500, 9);
  EXPECT_DOUBLE_EQ(uneven.columns.step, 500.0 / 341);
  EXPECT_DOUBLE_EQ(uneven.columns.begin, 58 * 500.0 / 341);
}

TEST(Place, WithoutACropIsTheWholeImage) {
  ImageOptions options;
  options.crop = CropMode::kNone;
  options.height = 10;
  const Placement placement = Place(options, 20, 448, 0);
  EXPECT_EQ(BoxOf(placement), (Box{0, 0, 20, 448}));
  EXPECT_DOUBLE_EQ(placement.rows.step, 2);
  EXPECT_DOUBLE_EQ(placement.columns.step, 2);
}

TEST(Reduce, KeepsThePartOfTheImage) {
  // Source pixels 13 to 43 of 45 become 3.25 to 10.75 of 12.
  const AxisPlacement reduced = Reduce({13, 43, 0, 3}, 4, 12);
  EXPECT_EQ(reduced.low, 3);
  EXPECT_EQ(reduced.high, 11);
  EXPECT_DOUBLE_EQ(reduced.begin, 0.25);
  EXPECT_DOUBLE_EQ(reduced.step, 0.75);
  EXPECT_EQ(Reduce({0, 45, 0, 1}, 8, 6).high, 6);
}

// For any size, all output pixels are inside the image.
TEST(Place, InTheCenterStaysInTheImage) {
  ImageOptions options;
  options.crop = CropMode::kCenter;
  for (const int64_t out : {1, 7, 224, 500}) {
    options.height = out;
    options.width = 224;
    for (const int64_t height : {1, 2, 223, 224, 1000, 65500}) {
      for (const int64_t width : {1, 3, 224, 257, 65500}) {
        const Placement placement = Place(options, height, width, 0);
        for (const auto& [axis, size, count] :
             {std::tuple{placement.rows, height, options.height},
              std::tuple{placement.columns, width, options.width}}) {
          const double end = axis.begin + static_cast<double>(count) * axis.step;
          ASSERT_EQ(axis.high - axis.low, size);
          ASSERT_GE(axis.begin, 0) << height << " x " << width << " to " << out;
          ASSERT_LE(end, static_cast<double>(size) * (1 + 1e-9)) << height << " x " << width;
        }
      }
    }
  }
}

TEST(Place, AtRandomStaysInImagesOfAnyShape) {
  for (const int64_t height : {1, 2, 3, 10, 65500}) {
    for (const int64_t width : {1, 2, 5, 1000}) {
      for (uint64_t seed = 0; seed < 50; ++seed) {
        const Box box = BoxOf(Place({}, height, width, seed));
        ASSERT_GE(box.top, 0);
        ASSERT_GE(box.left, 0);
        ASSERT_GE(box.height, 1);
        ASSERT_GE(box.width, 1);
        ASSERT_LE(box.top + box.height, height) << height << " x " << width << ", seed " << seed;
        ASSERT_LE(box.left + box.width, width) << height << " x " << width << ", seed " << seed;
      }
    }
  }
}

TEST(Place, WithoutFlipsNoImageIsMirrored) {
  ImageOptions options;
  options.flip = false;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    ASSERT_FALSE(Place(options, 300, 400, seed).mirrored);
  }
}

TEST(Reduce, StaysInTheReducedImage) {
  for (const int64_t factor : {1, 2, 4, 8}) {
    for (int64_t size = 1; size < 40; ++size) {
      const int64_t reduced_size = (size + factor - 1) / factor;
      for (int64_t low = 0; low < size; ++low) {
        const AxisPlacement reduced = Reduce({low, size, 0, 1}, factor, reduced_size);
        ASSERT_GE(reduced.low, 0);
        ASSERT_LT(reduced.low, reduced.high) << low << " of " << size << " by " << factor;
        ASSERT_LE(reduced.high, reduced_size);
        ASSERT_GE(reduced.begin, 0);
        ASSERT_LT(reduced.begin, 1);
      }
    }
  }
}

}  // namespace
}  // namespace hearth::image
