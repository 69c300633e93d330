#include "hearth/caffe/tools/classify.h"

#include "hearth/base/error.h"
#include "hearth/caffe/data/mean_file.h"
#include "hearth/caffe/layers/testing/file_layer_testing.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/tools/testing/trained_net_testing.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// A net whose classes are weighted sums of the three channels of a one-pixel image.
class ClassifyTest : public FileLayerTest {
 protected:
  ClassifyTest() {
    WriteInnerProduct(3, {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, -1, 0, 2, 0},
                      Path("weights.caffemodel"));
    options_.weights = Path("weights.caffemodel");
    options_.net = Write("deploy.prototxt", Net(3));
    // The channel means are 2, 10 and 0.
    WriteMeanFile({3, 1, 2, {1, 3, 10, 10, 0, 0}}, Path("mean.binaryproto"));
    options_.mean = Path("mean.binaryproto");
    options_.labels = Write("labels.txt", "blue\ngreen\nred\nboth\nnone\ntwice\n");
    // The order is blue, green, red.
    options_.image = Write("p.png", image::EncodePng({1, 1, 3, {52, 40, 20}}));
  }

  static std::string Net(int channels) {
    return fmt::format(R"(
        layer {{ name: "in" type: "Input" top: "in"
                 input_param {{ shape {{ dim: 10 dim: {} dim: 1 dim: 1 }} }} }}
        layer {{ name: "ip" type: "InnerProduct" bottom: "in" top: "ip"
                 inner_product_param {{ num_output: 6 bias_term: false }} }})",
                       channels);
  }

  void ExpectRefused(const std::string& sentence) {
    EXPECT_THAT([&] { Classify(options_); }, ThrowsMessage<Error>(HasSubstr(sentence)));
  }

  ClassifyOptions options_;
};

TEST_F(ClassifyTest, ReturnsTheFiveMostLikelyClassesWithMeansSubtracted) {
  const std::vector<std::pair<std::string, float>> expected = {
      {"both", 80}, {"twice", 60}, {"blue", 50}, {"green", 30}, {"red", 20}};
  const auto found = Classify(options_);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].label, expected[i].first);
    EXPECT_FLOAT_EQ(found[i].confidence, expected[i].second);
  }
}

TEST_F(ClassifyTest, ResizesImagesToTheInput) {
  image::Image image{4, 6, 3, {}};
  for (int i = 0; i < 24; ++i) image.pixels.insert(image.pixels.end(), {52, 40, 20});
  Write("p.png", image::EncodePng(image));
  EXPECT_FLOAT_EQ(Classify(options_)[0].confidence, 80);
}

TEST_F(ClassifyTest, MismatchesAreReportedInOneSentence) {
  Write("p.png", "not an image");
  ExpectRefused("cannot decode " + options_.image);
  Write("labels.txt", "one\ntwo\n");
  ExpectRefused("labels.txt has 2 labels, but the net's output 'ip' has 6 classes");
  WriteMeanFile({1, 1, 1, {1}}, options_.mean);
  ExpectRefused("has 1 channels, but the net's input has 3");
  Write("deploy.prototxt", Net(3) + R"(layer { name: "x" type: "Split" bottom: "in" top: "x" })");
  ExpectRefused("deploy.prototxt has 1 inputs and 2 outputs");
}

}  // namespace
}  // namespace hearth::caffe
