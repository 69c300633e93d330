#include "hearth/caffe/tools/extract_features.h"

#include "hearth/base/error.h"
#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/kernels/int8_product.h"
#include "hearth/caffe/layers/testing/file_layer_testing.h"
#include "hearth/caffe/proto/wire_reader.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/caffe/tools/testing/trained_net_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class ExtractFeaturesTest : public FileLayerTest {
 protected:
  ExtractFeaturesTest() {
    auto writer = CreateDatabase(DataParameter::LMDB, Path("in"));
    for (int i = 0; i < 3; ++i) {
      Datum datum;
      datum.set_channels(1);
      datum.set_height(1);
      datum.set_width(2);
      datum.set_data(std::string(2, static_cast<char>(i)));
      datum.set_label(i);
      writer->Put(fmt::format("{}", i), WireBytes(datum));
    }
    writer->Commit();
    WriteInnerProduct(2, {10, 1}, Path("weights.caffemodel"));

    options_.weights = Path("weights.caffemodel");
    options_.net = Write("net.prototxt",
                         fmt::format(R"(layer {{ name: "data" type: "Data" top: "data" top: "label"
                         data_param {{ source: "{}" backend: LMDB batch_size: 2 }} }}
             layer {{ name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
                      inner_product_param {{ num_output: 1 bias_term: false }} }})",
                                     Path("in")));
    options_.blobs = {"ip", "data"};
    options_.databases = {Path("ip"), Path("data")};
    options_.batches = 2;
  }

  FeatureOptions options_;
};

TEST_F(ExtractFeaturesTest, StoresTheRowsOfEachBlob) {
  EXPECT_EQ(ExtractFeatures(options_), 4);
  const auto cursor = OpenDatabase(DataParameter::LMDB, Path("ip"));
  std::vector<std::string> keys;
  std::vector<float> values;
  for (; cursor->valid(); cursor->Next()) {
    Datum datum;
    ParseWire(cursor->value(), "datum", &datum);
    keys.emplace_back(cursor->key());
    values.push_back(datum.float_data(0));
  }
  EXPECT_THAT(keys, ElementsAre("0000000000", "0000000001", "0000000002", "0000000003"));
  EXPECT_THAT(values, ElementsAre(0, 11, 22, 0));

  Datum datum;
  ParseWire(OpenDatabase(DataParameter::LMDB, Path("data"))->value(), "datum", &datum);
  EXPECT_THAT((std::vector<int>{datum.channels(), datum.height(), datum.width()}),
              ElementsAre(1, 1, 2));
}

// "first" is stored with channels last, because both convolutions support it. An output of the net
// is row-major.
TEST_F(ExtractFeaturesTest, StoresImagesInTheOrderOfADatumWhateverTheNetsLayout) {
  options_.net = Write("images.prototxt",
                       R"(layer { name: "one" type: "DummyData" top: "one"
                 dummy_data_param { shape { dim: 1 dim: 1 dim: 2 dim: 2 }
                                    data_filler { type: "constant" value: 1 } } }
         layer { name: "first" type: "Convolution" bottom: "one" top: "first"
                 convolution_param { num_output: 3 kernel_size: 2 pad: 1 } }
         layer { name: "second" type: "Convolution" bottom: "first" top: "second"
                 convolution_param { num_output: 3 kernel_size: 1 bias_term: false } })");
  NetParameter model;
  const auto add_layer = [&](const std::string& name, const Shape& shape,
                             const std::vector<float>& values) {
    LayerParameter* layer = model.add_layer();
    layer->set_name(name);
    BlobProto* blob = layer->add_blobs();
    *blob->mutable_shape()->mutable_dim() = shape;
    blob->mutable_data()->assign(values.begin(), values.end());
    return layer;
  };
  // In channel c, each value is the sum of the window's weights times 10^c, so each position has a
  // different number.
  const std::vector<float> weights = {1, 2, 4, 8, 10, 20, 40, 80, 100, 200, 400, 800};
  BlobProto* bias = add_layer("first", {3, 1, 2, 2}, weights)->add_blobs();
  *bias->mutable_shape()->mutable_dim() = {3};
  bias->mutable_data()->assign(3, 0);
  add_layer("second", {3, 3, 1, 1}, {1, 0, 0, 0, 1, 0, 0, 0, 1});  // identity
  WriteModel(model, Path("images.caffemodel"));
  options_.weights = Path("images.caffemodel");
  options_.blobs = {"first", "second"};
  options_.databases = {Path("first"), Path("second")};
  options_.batches = 1;
  ExtractFeatures(options_);
  const std::vector<float> windows = {8, 12, 4, 10, 15, 5, 2, 3, 1};
  std::vector<float> expected;
  for (const float channel : {1, 10, 100}) {
    for (const float sum : windows) expected.push_back(channel * sum);
  }
  for (const std::string& database : options_.databases) {
    Datum datum;
    ParseWire(OpenDatabase(DataParameter::LMDB, database)->value(), "datum", &datum);
    EXPECT_THAT((std::vector<int>{datum.channels(), datum.height(), datum.width()}),
                ElementsAre(3, 3, 3));
    const auto& values = datum.float_data();
    EXPECT_EQ(std::vector<float>(values.begin(), values.end()), expected) << database;
  }
}

// With int8, the weights 10 and 1 are rounded to 127 and 13 times 10 / 127.
TEST_F(ExtractFeaturesTest, ComputesInThePrecisionOfItsOptions) {
  options_.precision = Precision::kInt8;
  ExtractFeatures(options_);
  const auto cursor = OpenDatabase(DataParameter::LMDB, Path("ip"));
  cursor->Next();
  Datum datum;
  ParseWire(cursor->value(), "datum", &datum);
  EXPECT_FLOAT_EQ(datum.float_data(0), Int8Product::IsSupported() ? 140 * 10 / 127.f : 11);
}

TEST_F(ExtractFeaturesTest, ChecksEverythingBeforeWriting) {
  const auto expect = [this](const std::string& message) {
    EXPECT_THAT([this] { ExtractFeatures(options_); }, ThrowsMessage<Error>(HasSubstr(message)));
    EXPECT_FALSE(std::filesystem::exists(Path("ip")));
  };
  options_.databases[1] = Path("in");
  expect("in already exists");
  options_.databases.pop_back();
  expect("2 blobs and 1 databases");
  options_.blobs = {"nothing"};
  expect("has no blob 'nothing'; it has data, label, ip");
}

}  // namespace
}  // namespace hearth::caffe
