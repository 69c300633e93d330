// Tests the base of Data and ImageData through ImageData.
#include "hearth/caffe/layers/image_file_data.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "hearth/base/testing/error_testing.h"
#include "hearth/caffe/layers/testing/file_layer_testing.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::caffe {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class ImageFileLayerTest : public FileLayerTest {
 protected:
  // Writes and lists one-pixel images. Each number is the pixel and the label of an image; -1
  // stands for a file that is not an image.
  void List(const std::vector<int>& pixels) const {
    std::string list;
    for (size_t i = 0; i < pixels.size(); ++i) {
      const std::string name = fmt::format("{}.png", i);
      const auto pixel = static_cast<uint8_t>(pixels[i]);
      Write(name, pixels[i] < 0 ? "not an image" : image::EncodePng({1, 1, 1, {pixel}}));
      list += fmt::format("{} {}\n", name, pixels[i]);
    }
    Write("list.txt", list);
  }
  std::string Layer(int batch_size, const std::string& more = "") const {
    return fmt::format(
        "type: 'ImageData' image_data_param {{ source: '{}' root_folder: '{}' batch_size: {} "
        "is_color: false }} {}",
        Path("list.txt"), Path(""), batch_size, more);
  }
  // Records invalid images in reported_.
  NetContext Reporting() {
    NetContext context = FileContext(TRAIN);
    context.on_invalid_row = [this](const std::string& id, const std::string& reason) {
      reported_.emplace_back(id, reason);
    };
    return context;
  }

  std::vector<std::pair<std::string, std::string>> reported_;
};

TEST_F(ImageFileLayerTest, AnInvalidImageIsReportedAndReplacedByTheNext) {
  List({0, -1, 2, -1, 4});
  FileLayerRun run(Layer(3), Reporting());
  // The minibatch is 0, 1, 2; the replacement of 1 is 3, whose replacement is 4.
  EXPECT_THAT(run.Next(0), ElementsAre(0, 4, 2));
  EXPECT_THAT(run.Values(1), ElementsAre(0, 4, 2));
  EXPECT_THAT(reported_, ElementsAre(Pair(HasSubstr("1.png"), HasSubstr("")),
                                     Pair(HasSubstr("3.png"), HasSubstr(""))));
}

TEST_F(ImageFileLayerTest, TheFirstImageOfAMinibatchMayBeInvalid) {
  List({0, 1, -1, 3});
  FileLayerRun run(Layer(2), Reporting());
  run.Next(0);
  EXPECT_THAT(run.Next(0), ElementsAre(0, 3)) << "3 was taken with the invalid one";
  EXPECT_EQ(reported_.size(), 1U);
}

TEST_F(ImageFileLayerTest, WithoutAReporterAnInvalidImageIsAnError) {
  List({0, -1});
  FileLayerRun run(Layer(2));
  const Error error = Thrown([&] { run.Next(0); });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.message(), HasSubstr(Path("1.png")));
}

// A missing file means that the list is wrong, so it is not skipped like an invalid image.
TEST_F(ImageFileLayerTest, AMissingFileIsAnErrorInAnyCase) {
  List({0, 1});
  std::filesystem::remove(Path("1.png"));
  FileLayerRun run(Layer(2), Reporting());
  EXPECT_EQ(CodeOf([&] { run.Next(0); }), ErrorCode::kNotFound);
  EXPECT_TRUE(reported_.empty());
}

TEST_F(ImageFileLayerTest, AListOfOtherFilesEnds) {
  std::vector<int> pixels(1100, -1);
  pixels[0] = 0;  // the layer gets its shape from the first image
  List(pixels);
  FileLayerRun run(Layer(2), Reporting());
  const Error error = Thrown([&] {
    for (int i = 0; i < 2; ++i) run.Next(0);
  });
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.message(), HasSubstr("1000 images of one minibatch are invalid"));
}

TEST_F(ImageFileLayerTest, AMinibatchHasImagesOfOneSize) {
  List({0, 1, 2, 3});
  Write("2.png", image::EncodePng({2, 1, 1, {5, 6}}));
  FileLayerRun alone(Layer(1));
  EXPECT_THAT(alone.Next(0, 3), ElementsAre(0, 1, 5, 6)) << "minibatches may differ";
  FileLayerRun together(Layer(4));
  EXPECT_THAT(Thrown([&] { together.Next(0); }).message(),
              AllOf(HasSubstr(Path("2.png")), HasSubstr("set crop_size or batch_size: 1")));
}

TEST_F(ImageFileLayerTest, AnInvalidFirstImageIsNamedWithoutAMinibatch) {
  List({-1, 1});
  EXPECT_THAT(Thrown([&] { FileLayerRun run(Layer(1), Reporting()); }).message(),
              HasSubstr(Path("0.png")));
}

}  // namespace
}  // namespace hearth::caffe
