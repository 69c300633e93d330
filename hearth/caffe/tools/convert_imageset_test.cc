#include "hearth/caffe/tools/convert_imageset.h"

#include <map>

#include "hearth/base/error.h"
#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/layers/testing/file_layer_testing.h"
#include "hearth/caffe/proto/wire_reader.h"
#include "hearth/image/decode.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class ConvertImagesetTest : public FileLayerTest {
 protected:
  ConvertImagesetTest() {
    options_.root = Path("");
    options_.list = Path("list.txt");
    options_.database = Path("db");
    options_.threads = 3;
    Write("a.png", image::EncodePng(image::GradientImage(2, 3, 3)));
    Write("b.png", image::EncodePng(image::GradientImage(4, 3, 1)));
    Write("list.txt", "a.png 1\nb.png 2\n");
  }

  std::map<std::string, Datum> Convert() const {
    ConvertImageset(options_);
    std::map<std::string, Datum> datums;
    const auto cursor = OpenDatabase(options_.backend, options_.database);
    for (; cursor->valid(); cursor->Next()) {
      ParseWire(cursor->value(), "datum", &datums[std::string(cursor->key())]);
    }
    return datums;
  }

  ConvertOptions options_;
};

TEST_F(ConvertImagesetTest, StoresPlanarPixelsWithNumberAndPathAsKey) {
  for (const DataParameter::DB backend : {DataParameter::LMDB, DataParameter::LEVELDB}) {
    options_.backend = backend;
    options_.database = Path(fmt::format("db{}", static_cast<int>(backend)));
    const auto datums = Convert();
    ASSERT_EQ(datums.size(), 2);
    const auto& [key, datum] = *datums.begin();
    EXPECT_EQ(key, "00000000_a.png");
    EXPECT_EQ(datums.rbegin()->first, "00000001_b.png");
    EXPECT_EQ(datum.label(), 1);
    EXPECT_THAT((std::vector<int>{datum.channels(), datum.height(), datum.width()}),
                ElementsAre(3, 2, 3));
    EXPECT_FALSE(datum.encoded());
    const image::Image image = image::GradientImage(2, 3, 3);
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < 6; ++i) {
        EXPECT_EQ(static_cast<uint8_t>(datum.data()[c * 6 + i]), image.pixels[i * 3 + c]);
      }
    }
    EXPECT_EQ(datums.rbegin()->second.channels(), 3);  // gray files are converted to color
  }
}

TEST_F(ConvertImagesetTest, ResizesAndConvertsToGray) {
  options_.gray = true;
  options_.height = 5;
  options_.width = 4;
  for (const auto& [key, datum] : Convert()) {
    EXPECT_THAT((std::vector<int>{datum.channels(), datum.height(), datum.width()}),
                ElementsAre(1, 5, 4))
        << key;
  }
}

TEST_F(ConvertImagesetTest, StoresFilesUnchangedIfPossible) {
  options_.encoded = true;
  const auto datums = Convert();
  const Datum& datum = datums.at("00000000_a.png");
  EXPECT_TRUE(datum.encoded());
  EXPECT_EQ(datum.data(), image::EncodePng(image::GradientImage(2, 3, 3)));
}

TEST_F(ConvertImagesetTest, ReencodesImages) {
  options_.encode_type = "jpg";
  options_.height = options_.width = 16;
  for (const auto& [key, datum] : Convert()) {
    EXPECT_TRUE(datum.encoded());
    EXPECT_EQ(datum.data().substr(0, 2), "\xff\xd8") << key;
    EXPECT_EQ(image::DecodeImage(datum.data(), image::ColorMode::kUnchanged).height, 16);
  }
}

TEST_F(ConvertImagesetTest, ShufflesKeysWithTheirImages) {
  std::string list;
  for (int i = 0; i < 30; ++i) list += fmt::format("a.png {}\n", i);
  Write("list.txt", list);
  options_.shuffle = true;
  std::vector<int> labels;
  for (const auto& [key, datum] : Convert()) labels.push_back(datum.label());
  EXPECT_FALSE(std::is_sorted(labels.begin(), labels.end()));
  std::sort(labels.begin(), labels.end());
  for (int i = 0; i < 30; ++i) EXPECT_EQ(labels[i], i);
}

TEST_F(ConvertImagesetTest, LeavesOutUnreadableImages) {
  Write("list.txt", "a.png 1\nmissing.png 2\nlist.txt 3\nb.png 4\n");
  const auto datums = Convert();
  EXPECT_EQ(datums.size(), 2);
  EXPECT_EQ(datums.count("00000003_b.png"), 1);
}

TEST_F(ConvertImagesetTest, RejectsInvalidOptions) {
  const auto expect = [this](const std::string& message) {
    EXPECT_THAT([this] { ConvertImageset(options_); }, ThrowsMessage<Error>(HasSubstr(message)));
    std::filesystem::remove_all(Path("db"));
  };
  options_.check_size = true;
  expect("b.png has 36 bytes of pixels, but the images before it have 18");
  options_.height = 3;
  expect("set both, or neither");
  options_.height = 0;
  options_.encode_type = "gif";
  expect("'gif'");
  options_.encode_type = "";
  Write("list.txt", "missing.png 1");
  expect("none of the 1 images");
}

}  // namespace
}  // namespace hearth::caffe
