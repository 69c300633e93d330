#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/caffe/layers/testing/file_layer_testing.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class ImageData : public FileLayerTest {
 protected:
  // Writes and lists images 0.png, 1.png, ..., whose pixel and label are the number.
  std::string WriteList(int count) const {
    std::string list;
    for (int i = 0; i < count; ++i) {
      const image::Image image{1, 1, 1, {static_cast<uint8_t>(i)}};
      Write(fmt::format("{}.png", i), image::EncodePng(image));
      list += fmt::format("{}.png {}\n", i, i);
    }
    return Write("list.txt", list);
  }
  std::string Layer(int batch_size, const std::string& more = "") const {
    return fmt::format(
        "type: 'ImageData' image_data_param {{ source: '{}' root_folder: '{}' batch_size: {} "
        "is_color: false {} }}",
        Path("list.txt"), Path(""), batch_size, more);
  }
};

TEST_F(ImageData, RepeatsTheListInOrder) {
  WriteList(3);
  FileLayerRun run(Layer(2));
  EXPECT_THAT(run.shape(0), ElementsAre(2, 1, 1, 1));
  EXPECT_THAT(run.Next(0, 3), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(run.Values(1), ElementsAre(1, 2));
}

TEST_F(ImageData, IsShuffledInEveryEpochEquallyOnAllRanks) {
  WriteList(12);
  FileLayerRun alone(Layer(12, "shuffle: true"), FileContext(TRAIN));
  const std::vector<float> first = alone.Next(1), second = alone.Next(1);
  EXPECT_NE(first, second);
  std::vector<float> sorted = first;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_NE(first, sorted);
  EXPECT_EQ(std::unique(sorted.begin(), sorted.end()) - sorted.begin(), 12);

  FileLayerRun rank(Layer(4, "shuffle: true"), FileContext(TRAIN, 2, 3));
  EXPECT_THAT(rank.Next(1), ElementsAre(first[2], first[5], first[8], first[11]));
}

TEST_F(ImageData, ResumesWhereAnUninterruptedRunWouldBe) {
  WriteList(5);
  FileLayerRun unbroken(Layer(2, "shuffle: true"), FileContext(TRAIN));
  unbroken.Next(1, 4);
  FileLayerRun resumed(Layer(2, "shuffle: true"), FileContext(TRAIN));
  for (int i = 0; i < 5; ++i) resumed.layer().Fetch();
  EXPECT_EQ(resumed.Next(1, 2), unbroken.Next(1, 2));
}

TEST_F(ImageData, SkipsASmallNumberOfImagesAtRandom) {
  WriteList(9);
  const float first = FileLayerRun(Layer(1, "rand_skip: 9"), FileContext(TRAIN)).Next(1)[0];
  EXPECT_GT(first, 0);
  EXPECT_THAT([&] { FileLayerRun(Layer(1, "rand_skip: 10")); },
              ThrowsMessage<Error>(HasSubstr("rand_skip 10 is more than the 9 images")));
}

TEST_F(ImageData, ResizesAndConvertsColors) {
  WriteList(1);
  FileLayerRun run(
      fmt::format("type: 'ImageData' image_data_param {{ source: '{}' root_folder: "
                  "'{}' new_height: 2 new_width: 3 }}",
                  Path("list.txt"), Path("")));
  EXPECT_THAT(run.shape(0), ElementsAre(1, 3, 2, 3));
  EXPECT_THAT([&] { FileLayerRun(Layer(1, "new_height: 2")); },
              ThrowsMessage<Error>(HasSubstr("set both, or neither")));
}

TEST_F(ImageData, NamesMissingAndDamagedImages) {
  WriteList(2);
  Write("1.png", "not an image");
  FileLayerRun damaged(Layer(2));
  EXPECT_THAT([&] { damaged.Next(0); }, ThrowsMessage<Error>(HasSubstr(Path("1.png"))));
  std::filesystem::remove(Path("1.png"));
  FileLayerRun missing(Layer(2));
  EXPECT_THAT([&] { missing.Next(0); }, ThrowsMessage<Error>(HasSubstr(Path("1.png"))));
}

TEST_F(ImageData, ListsMayHavePathsWithBlanksAndRequireIntegers) {
  Write("a b.png", image::EncodePng({1, 1, 1, {7}}));
  Write("list.txt", "\na b.png 3 \r\n\n");
  FileLayerRun run(Layer(1));
  EXPECT_THAT(run.Next(0), ElementsAre(7));
  EXPECT_THAT(run.Values(1), ElementsAre(3));
  Write("list.txt", "a.png 1\nb.png one\n");
  EXPECT_THAT(
      [&] { FileLayerRun(Layer(1)); },
      ThrowsMessage<Error>(HasSubstr("list.txt:2: 'b.png one' does not end in an integer")));
  Write("list.txt", "\n");
  EXPECT_THAT([&] { FileLayerRun(Layer(1)); }, ThrowsMessage<Error>(HasSubstr("has no images")));
}

}  // namespace
}  // namespace hearth::caffe
