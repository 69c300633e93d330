#include "hearth/image/placement.h"

#include <gmock/gmock.h>

#include <cmath>

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

// Must never change: a run that is resumed with a later release repeats its crops.
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
  // torchvision 0.29 has 0.432 and 0.578: large and narrow crops are rejected, as they do not fit.
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
  // 256 x 341 pixels: the long side is rounded down, half a pixel of the margin to even.
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
  // Pixels 13 to 43 of 45: 3.25 to 10.75 of 12.
  const AxisPlacement reduced = Reduce({13, 43, 0, 3}, 4, 12);
  EXPECT_EQ(reduced.low, 3);
  EXPECT_EQ(reduced.high, 11);
  EXPECT_DOUBLE_EQ(reduced.begin, 0.25);
  EXPECT_DOUBLE_EQ(reduced.step, 0.75);
  EXPECT_EQ(Reduce({0, 45, 0, 1}, 8, 6).high, 6);
}

}  // namespace
}  // namespace hearth::image
