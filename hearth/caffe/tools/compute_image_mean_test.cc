#include "hearth/caffe/tools/compute_image_mean.h"

#include "hearth/base/error.h"
#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/layers/testing/file_layer_testing.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class ComputeImageMeanTest : public FileLayerTest {
 protected:
  MeanImage MeanOf(const std::vector<Datum>& datums) const {
    {
      auto writer = CreateDatabase(DataParameter::LEVELDB, Path("db"));
      for (size_t i = 0; i < datums.size(); ++i) {
        writer->Put(fmt::format("{:03}", i), WireBytes(datums[i]));
      }
      writer->Commit();
    }
    return ComputeImageMean(DataParameter::LEVELDB, Path("db"));
  }

  static Datum Raw(const std::string& pixels) {
    Datum datum;
    datum.set_channels(2);
    datum.set_height(1);
    datum.set_width(static_cast<int32_t>(pixels.size()) / 2);
    datum.set_data(pixels);
    return datum;
  }
};

TEST_F(ComputeImageMeanTest, IsComputedPerPixel) {
  const MeanImage mean = MeanOf({Raw("\x01\x02\x03\xff"), Raw("\x02\x02\x04\xff")});
  EXPECT_THAT((std::vector<int64_t>{mean.channels, mean.height, mean.width}), ElementsAre(2, 1, 2));
  EXPECT_THAT(mean.values, ElementsAre(1.5f, 2, 3.5f, 255));
}

TEST_F(ComputeImageMeanTest, AcceptsEncodedImagesAndFloats) {
  Datum file, floats;
  file.set_encoded(true);
  file.set_data(image::EncodePng({1, 1, 1, {10}}));
  floats.set_channels(1);
  floats.set_height(1);
  floats.set_width(1);
  floats.add_float_data(0.5f);
  EXPECT_THAT(MeanOf({file, floats}).values, ElementsAre(5.25f));
}

TEST_F(ComputeImageMeanTest, NamesTheRecordThatDoesNotMatch) {
  EXPECT_THAT(
      [&] {
        MeanOf({Raw("ab"), Raw("abcd")});
      },
      ThrowsMessage<Error>(
          HasSubstr("record '001' of " + Path("db") +
                    ": the image has 2 x 1 x 2 values, but the first image has 2 x 1 x 1")));
}

TEST_F(ComputeImageMeanTest, FailsWithoutImages) {
  EXPECT_THAT([&] { MeanOf({}); }, ThrowsMessage<Error>(HasSubstr("is empty")));
}

}  // namespace
}  // namespace hearth::caffe
