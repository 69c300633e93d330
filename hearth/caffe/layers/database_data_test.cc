#include "hearth/base/error.h"
#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/layers/testing/file_layer_testing.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/image/encode.h"
#include "hearth/image/testing/image_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Datum RawDatum(int label, int32_t height = 1, int32_t width = 2) {
  Datum datum;
  datum.set_channels(1);
  datum.set_height(height);
  datum.set_width(width);
  datum.set_data(std::string(size_t{1} * height * width, static_cast<char>(10 * label)));
  datum.set_label(label);
  return datum;
}

class DatabaseData : public FileLayerTest {
 protected:
  void WriteRecords(const std::vector<std::string>& records) const {
    auto writer = CreateDatabase(DataParameter::LMDB, Path("db"));
    for (size_t i = 0; i < records.size(); ++i) writer->Put(fmt::format("{:03}", i), records[i]);
    writer->Commit();
  }
  // Writes records with labels 0, 1, 2, ...
  void WriteCounting(int count) const {
    std::vector<std::string> records;
    for (int i = 0; i < count; ++i) records.push_back(WireBytes(RawDatum(i)));
    WriteRecords(records);
  }
  std::string Layer(int batch_size, const std::string& more = "") const {
    return fmt::format("type: 'Data' data_param {{ source: '{}' backend: LMDB batch_size: {} {} }}",
                       Path("db"), batch_size, more);
  }
};

TEST_F(DatabaseData, StartsOverAfterTheLastRecord) {
  WriteCounting(3);
  FileLayerRun run(Layer(2));
  EXPECT_THAT(run.shape(0), ElementsAre(2, 1, 1, 2));
  EXPECT_THAT(run.shape(1), ElementsAre(2));
  EXPECT_THAT(run.Next(0), ElementsAre(0, 0, 10, 10));
  EXPECT_THAT(run.Values(1), ElementsAre(0, 1));
  EXPECT_THAT(run.Next(1, 2), ElementsAre(2, 0, 1, 2));
}

TEST_F(DatabaseData, IsDistributedOverTheRanksRoundRobin) {
  WriteCounting(6);
  for (int rank = 0; rank < 2; ++rank) {
    FileLayerRun run(Layer(2), FileContext(TRAIN, rank, 2));
    const float r = static_cast<float>(rank);
    EXPECT_THAT(run.Next(1, 2), ElementsAre(r, r + 2, r + 4, r)) << "rank " << rank;
  }
  FileLayerRun test(Layer(2), FileContext(TEST, 1, 2));
  EXPECT_THAT(test.Next(1, 2), ElementsAre(0, 1, 2, 3));
}

TEST_F(DatabaseData, ResumesWhereAnUninterruptedRunWouldBe) {
  WriteCounting(7);
  for (const int ranks : {1, 2}) {
    FileLayerRun unbroken(Layer(2), FileContext(TRAIN, 0, ranks));
    unbroken.Next(1, 3);
    FileLayerRun resumed(Layer(2), FileContext(TRAIN, 0, ranks));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(resumed.layer().Fetch(), std::nullopt);
    resumed.layer().Fetch();  // fetches the minibatch of the next iteration
    EXPECT_EQ(resumed.Next(1, 3), unbroken.Next(1, 3)) << ranks << " ranks";
  }
}

TEST_F(DatabaseData, MakesTheSameRandomChoicesForARecordOnAnyRank) {
  std::vector<std::string> records;
  for (int i = 0; i < 4; ++i) {
    Datum datum = RawDatum(i, 4, 4);
    for (int p = 0; p < 16; ++p) (*datum.mutable_data())[p] = static_cast<char>(p);
    records.push_back(WireBytes(datum));
  }
  WriteRecords(records);
  const std::string layer = Layer(4) + " transform_param { crop_size: 2 mirror: true }";
  FileLayerRun alone(layer, FileContext(TRAIN));
  FileLayerRun second(Layer(2) + " transform_param { crop_size: 2 mirror: true }",
                      FileContext(TRAIN, 1, 2));
  const std::vector<float> all = alone.Next(0), half = second.Next(0);
  EXPECT_TRUE(std::equal(half.begin(), half.begin() + 4, all.begin() + 4));
  EXPECT_TRUE(std::equal(half.begin() + 4, half.end(), all.begin() + 12));
}

TEST_F(DatabaseData, SkipsASmallNumberOfRecordsAtRandom) {
  WriteCounting(50);
  const float first = FileLayerRun(Layer(1, "rand_skip: 20"), FileContext(TRAIN)).Next(1)[0];
  EXPECT_GT(first, 0);
  EXPECT_LT(first, 20);
}

TEST_F(DatabaseData, ReadsFloatsAndEncodedImages) {
  Datum floats;
  floats.set_channels(3);
  floats.set_height(1);
  floats.set_width(1);
  *floats.mutable_float_data() = {0.5f, -1, 2};
  Datum file;
  file.set_encoded(true);
  file.set_data(image::EncodePng(image::GradientImage(1, 1, 3)));
  WriteRecords({WireBytes(floats), WireBytes(file)});
  const image::Image image = image::GradientImage(1, 1, 3);
  FileLayerRun run(Layer(2));
  EXPECT_THAT(run.Next(0),
              ElementsAre(0.5f, -1, 2, image.pixels[0], image.pixels[1], image.pixels[2]));
}

TEST_F(DatabaseData, AcceptsImagesOfAnySizeInBatchesOfOne) {
  WriteRecords({WireBytes(RawDatum(0, 1, 2)), WireBytes(RawDatum(1, 3, 2))});
  FileLayerRun one_by_one(Layer(1));
  one_by_one.Next(0, 2);
  EXPECT_THAT(one_by_one.shape(0), ElementsAre(1, 1, 3, 2));
  FileLayerRun both(Layer(2));
  EXPECT_THAT([&] { both.Next(0); },
              ThrowsMessage<Error>(HasSubstr("record '001' of " + Path("db") +
                                             ": an image of 1 x 3 x 2 does not fit")));
}

TEST_F(DatabaseData, ReportsInvalidRecordsAndReplacesThem) {
  WriteRecords({WireBytes(RawDatum(0)), "no Datum", WireBytes(RawDatum(2)), "nor this",
                WireBytes(RawDatum(4))});
  FileLayerRun silent(Layer(3));
  EXPECT_THAT([&] { silent.Next(1); }, ThrowsMessage<Error>(HasSubstr("record '001' of ")));

  std::vector<std::string> bad;
  NetContext context = FileContext(TEST);
  context.transform_threads = 3;
  context.on_invalid_row = [&](const std::string& name, const std::string&) {
    bad.push_back(name);
  };
  FileLayerRun reported(Layer(3), context);
  std::vector<float> labels = reported.Next(1);
  std::sort(labels.begin(), labels.end());
  EXPECT_THAT(labels, ElementsAre(0, 2, 4));
  EXPECT_THAT(bad, ElementsAre(HasSubstr("'001'"), HasSubstr("'003'")));
}

TEST_F(DatabaseData, NamesMissingSources) {
  EXPECT_THAT([&] { FileLayerRun(Layer(2)); },
              ThrowsMessage<Error>("there is no database " + Path("db")));
  EXPECT_THAT([&] { FileLayerRun("type: 'Data' data_param { batch_size: 1 }"); },
              ThrowsMessage<Error>(HasSubstr("data_param has no source")));
  WriteRecords({});
  EXPECT_THAT([&] { FileLayerRun(Layer(2)); }, ThrowsMessage<Error>(HasSubstr("is empty")));
  EXPECT_THAT([&] { FileLayerRun(Layer(0)); }, ThrowsMessage<Error>(HasSubstr("batch_size")));
}

}  // namespace
}  // namespace hearth::caffe
