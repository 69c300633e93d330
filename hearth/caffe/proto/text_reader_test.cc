#include "hearth/caffe/proto/text_reader.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/messages.h"
#include "hearth/caffe/proto/testing/fails_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;

constexpr char kNet[] = R"(
name: "a \"net\"" ' in two parts'  # a comment
layer {
  name: "data" type: "MemoryData" top: "data"; top: "label",
  include { phase: TRAIN }
  source_class: "com.yahoo.ml.caffe.LMDB"
  memory_data_param { source: 'file:\x2Ftmp' batch_size: 0x40 channels: 010 image_encoded: true }
}
layer <
  name: "conv" type: "Convolution"
  param: { lr_mult: 1 }
  param { lr_mult: -2.5e-1f decay_mult: .5 }
  propagate_down: [true, False, 1]
  convolution_param: {
    num_output: 20 kernel_size: [5, 3] weight_filler { type: "xavier" variance_norm: AVERAGE }
    engine: 2
  }
>
)";

NetParameter ParseNet(std::string_view text) {
  NetParameter net;
  ParseText(text, "net.prototxt", &net);
  return net;
}

TEST(ParseText, ReadsEverySyntax) {
  const NetParameter net = ParseNet(kNet);
  EXPECT_EQ(net.name(), "a \"net\" in two parts");
  ASSERT_EQ(net.layer_size(), 2);
  const LayerParameter& data = net.layer(0);
  EXPECT_THAT(data.top(), ElementsAre("data", "label"));
  EXPECT_EQ(data.include(0).phase(), TRAIN);
  EXPECT_FALSE(data.include(0).has_min_level());
  EXPECT_EQ(data.source_class(), "com.yahoo.ml.caffe.LMDB");
  EXPECT_EQ(data.memory_data_param().source(), "file:/tmp");
  EXPECT_EQ(data.memory_data_param().batch_size(), 64u);
  EXPECT_EQ(data.memory_data_param().channels(), 8u);
  EXPECT_EQ(data.memory_data_param().dataframe_format(), "parquet");
  const LayerParameter& conv = net.layer(1);
  EXPECT_FLOAT_EQ(conv.param(1).lr_mult(), -0.25f);
  EXPECT_FLOAT_EQ(conv.param(0).decay_mult(), 1.0f);
  EXPECT_THAT(conv.propagate_down(), ElementsAre(true, false, true));
  EXPECT_THAT(conv.convolution_param().kernel_size(), ElementsAre(5u, 3u));
  EXPECT_EQ(conv.convolution_param().weight_filler().variance_norm(), FillerParameter::AVERAGE);
  EXPECT_EQ(conv.convolution_param().engine(), ConvolutionParameter::CUDNN);
  EXPECT_FALSE(conv.has_pooling_param());
  EXPECT_EQ(conv.pooling_param().pool(), PoolingParameter::MAX);
}

TEST(ParseText, ReadsInfinityAndNan) {
  const NetParameter net =
      ParseNet("layer { loss_weight: -inf loss_weight: nan loss_weight: 1e99 }");
  EXPECT_EQ(net.layer(0).loss_weight(0), -INFINITY);
  EXPECT_TRUE(std::isnan(net.layer(0).loss_weight(1)));
  EXPECT_EQ(net.layer(0).loss_weight(2), INFINITY);
}

TEST(ParseText, SuggestsNamesForAMisspeltField) {
  EXPECT_THAT(
      [] { ParseNet("layer {\n  convolution_parm { }\n}"); },
      Fails("net.prototxt:2:3: found 'convolution_parm', expected a field of LayerParameter; "
            "did you mean convolution_param"));
}

TEST(ParseText, SuggestsNamesOfAnEnum) {
  EXPECT_THAT(
      [] { ParseNet("layer { pooling_param { pool: MAXX } }"); },
      Fails("net.prototxt:1:31: found 'MAXX', expected one of MAX, AVE, STOCHASTIC for 'pool'; "
            "did you mean MAX"));
  EXPECT_THAT([] { ParseNet("layer { pooling_param { pool: 7 } }"); },
              Fails("found '7', expected one of"));
}

TEST(ParseText, NamesTheExpectedKindOfValue) {
  EXPECT_THAT([] { ParseNet("name: lenet"); },
              Fails("net.prototxt:1:7: found 'lenet', expected a string in quotes for 'name'"));
  EXPECT_THAT([] { ParseNet("force_backward: maybe"); },
              Fails("expected true or false for 'force_backward'"));
  EXPECT_THAT([] { ParseNet("layer { lrn_param { local_size: -5 } }"); },
              Fails("expected a whole number from 0 to 4294967295 for 'local_size'"));
  EXPECT_THAT([] { ParseNet("input_dim: 2147483648"); },
              Fails("expected a whole number from -2147483648"));
  EXPECT_THAT([] { ParseNet("input_dim: 1.5"); }, Fails("found '1.5', expected a whole number"));
  EXPECT_THAT([] { ParseNet("layer { lrn_param { alpha: 1.2.3 } }"); },
              Fails("found '1.2.3', expected a number"));
  EXPECT_THAT([] { ParseNet("name \"a\""); }, Fails("expected ':' and a value for 'name'"));
  EXPECT_THAT([] { ParseNet("layer: 3"); },
              Fails("found '3', expected '{' to begin a LayerParameter"));
}

TEST(ParseText, RejectsARepeatedSingularField) {
  EXPECT_THAT([] { ParseNet("name: 'a'\nname: 'b'"); },
              Fails("net.prototxt:2:1: found 'name' a second time"));
  EXPECT_THAT([] { ParseNet("state { } state { }"); }, Fails("found 'state' a second time"));
}

TEST(ParseText, RequiresRequiredFields) {
  EXPECT_THAT([] { ParseNet("layer { clip_param { min: 0 } }"); },
              Fails("found a ClipParameter without 'max'"));
}

TEST(ParseText, NamesTheLineWhereAnOpenMessageBegan) {
  EXPECT_THAT(
      [] { ParseNet("layer {\n name: 'a'\n"); },
      Fails("net.prototxt:3:1: found the end of the file, expected '}' for the LayerParameter "
            "that begins at line 1"));
}

TEST(ParseText, RejectsBytesThatAreNotText) {
  EXPECT_THAT([] { ParseNet(std::string("\x0a\x05lenet", 7)); }, Fails("is this a prototxt file?"));
  EXPECT_THAT([] { ParseNet("name: \"abc\nlayer {}"); }, Fails("without its closing quote"));
  EXPECT_THAT([] { ParseNet("name: '\\q'"); }, Fails("unknown \\ escape"));
  EXPECT_THAT([] { ParseNet("name: '\\777'"); }, Fails("unknown \\ escape"));
}

// Truncated or corrupted input is either read or throws Error.
TEST(ParseText, SurvivesRandomTruncationAndCorruption) {
  std::mt19937 random(1);
  const std::string text = kNet;
  int failures = 0;
  for (int round = 0; round < 400; ++round) {
    std::string damaged = text.substr(0, random() % text.size());
    if (round % 2 == 1 && !damaged.empty())
      damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      ParseNet(damaged);
    } catch (const Error& error) {
      EXPECT_EQ(error.message().rfind("net.prototxt:", 0), 0u) << error.message();
      ++failures;
    }
  }
  EXPECT_GT(failures, 200);
}

}  // namespace
}  // namespace hearth::caffe
