#include <map>

#include "hearth/base/error.h"
#include "hearth/caffe/data/mean_file.h"
#include "hearth/caffe/layers/testing/file_layer_testing.h"
#include "hearth/image/resize.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::caffe {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int kHeight = 20, kWidth = 30;

class WindowData : public FileLayerTest {
 protected:
  WindowData() { Write("p.png", image::EncodePng(image::GradientImage(kHeight, kWidth, 3))); }

  // Foreground windows have labels above 0.
  void WriteWindows(const std::string& windows, int count) const {
    Write("w.txt", fmt::format("# 0\np.png\n3\n{}\n{}\n{}\n{}\n", kHeight, kWidth, count, windows));
  }
  std::string Layer(int batch_size, const std::string& more = "",
                    const std::string& transform = "crop_size: 8") const {
    return fmt::format(
        "type: 'WindowData' transform_param {{ {} }} window_data_param {{ source: "
        "'{}' root_folder: '{}' batch_size: {} {} }}",
        transform, Path("w.txt"), Path(""), batch_size, more);
  }
};

TEST_F(WindowData, HasAFractionOfForegroundAfterTheBackground) {
  WriteWindows("3 0.8 0 0 9 9\n4 0.2 5 5 9 9\n7 0.5 3 3 8 8", 3);
  FileLayerRun run(Layer(8));
  EXPECT_THAT(run.shape(0), ElementsAre(8, 3, 8, 8));
  const std::vector<float> labels = run.Next(1);
  EXPECT_THAT(std::vector<float>(labels.begin(), labels.begin() + 6), Each(0));
  EXPECT_THAT(std::vector<float>(labels.begin() + 6, labels.end()), Each(testing::AnyOf(3, 7)));
  EXPECT_NE(run.Next(0), run.Next(0));
}

TEST_F(WindowData, IsTheWarpedWindowMinusTheMeanAndScaled) {
  WriteWindows("1 1.0 4 6 15 13", 1);
  FileLayerRun run(Layer(1, "fg_fraction: 1",
                         "crop_size: 8 mean_value: 10 mean_value: 20 mean_value: 30 scale: 0.5"));
  const std::vector<float> got = run.Next(0);
  const image::Image whole = image::GradientImage(kHeight, kWidth, 3);
  image::Image window{8, 12, 3, {}};
  for (int y = 6; y <= 13; ++y) {
    for (int x = 4; x <= 15; ++x) {
      for (int c = 0; c < 3; ++c) window.pixels.push_back(whole.pixels[(y * kWidth + x) * 3 + c]);
    }
  }
  const image::Image warped = image::Resize(window, 8, 8);
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < 64; ++i) {
      const float mean = 10.0f * static_cast<float>(c + 1);
      ASSERT_EQ(got[c * 64 + i], (static_cast<float>(warped.pixels[i * 3 + c]) - mean) * 0.5f);
    }
  }
}

TEST_F(WindowData, UsesTheCenterOfTheMeanFile) {
  WriteWindows("1 1.0 4 6 15 13", 1);
  MeanImage mean{3, 10, 12, std::vector<float>(360)};
  for (int i = 0; i < 360; ++i) mean.values[i] = static_cast<float>(i);
  WriteMeanFile(mean, Path("mean"));
  FileLayerRun plain(Layer(1, "fg_fraction: 1"));
  FileLayerRun less(
      Layer(1, "fg_fraction: 1", fmt::format("crop_size: 8 mean_file: '{}'", Path("mean"))));
  const std::vector<float> with = plain.Next(0), without = less.Next(0);
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 8; ++y) {
      for (int x = 0; x < 8; ++x) {
        const int at = (c * 8 + y) * 8 + x;
        ASSERT_EQ(with[at] - without[at], static_cast<float>((c * 10 + y + 1) * 12 + x + 2));
      }
    }
  }
}

TEST_F(WindowData, LeavesZerosOutsideTheImage) {
  WriteWindows("1 1.0 0 0 9 9", 1);
  FileLayerRun run(Layer(1, "fg_fraction: 1 context_pad: 2", "crop_size: 8 mean_value: 300"));
  const std::vector<float> got = run.Next(0);
  EXPECT_EQ(got[0], 0);
  EXPECT_LT(got[7 * 8 + 7], 0);  // every pixel is below the mean of 300
}

TEST_F(WindowData, IsMirroredHalfOfTheTime) {
  WriteWindows("1 1.0 4 6 15 13", 1);
  FileLayerRun run(Layer(40, "fg_fraction: 1 cache_images: true", "crop_size: 8 mirror: true"));
  const std::vector<float> got = run.Next(0);
  std::map<std::vector<float>, int> kinds;
  for (int64_t i = 0; i < 40; ++i) {
    ++kinds[{got.begin() + i * 192, got.begin() + (i + 1) * 192}];
  }
  ASSERT_EQ(kinds.size(), 2);
  const auto& [one, count] = *kinds.begin();
  const auto& other = kinds.rbegin()->first;
  EXPECT_GT(count, 8);
  EXPECT_LT(count, 32);
  for (int i = 0; i < 192; ++i) ASSERT_EQ(one[i], other[i / 8 * 8 + 7 - i % 8]);
}

TEST_F(WindowData, RejectsInvalidListsAndSettings) {
  const auto expect = [&](const std::string& layer, const std::string& message) {
    EXPECT_THAT([&] { FileLayerRun run(layer); }, ThrowsMessage<Error>(HasSubstr(message)));
  };
  expect(Layer(1), "w.txt");
  WriteWindows("1 1.0 4 6 15 13", 1);
  expect(Layer(4), "has no background windows");
  expect(Layer(4, "fg_fraction: 1 crop_mode: 'round'"), "crop_mode 'round'");
  expect(Layer(4, "fg_fraction: 1 context_pad: 4"), "twice the context_pad 4");
  WriteWindows("1 1.0 4 6 30 13", 1);
  expect(Layer(1), "window 0 of p.png is not");
  WriteWindows("0 1.0 4 6 15 13", 1);
  expect(Layer(1), "has label 0, which must be above 0");
  Write("w.txt", "p.png 3");
  expect(Layer(1), "found 'p.png', expected '#' at the beginning of an entry");
}

}  // namespace
}  // namespace hearth::caffe
