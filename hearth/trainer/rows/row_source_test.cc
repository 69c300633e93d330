#include "hearth/trainer/rows/row_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::optional<RowSource> SourceOf(const std::string& layer, caffe::Phase phase = caffe::TRAIN) {
  caffe::NetParameter net = caffe::ParseNet(layer, "net");
  net.mutable_state()->set_phase(phase);
  return RowSourceOf(net);
}

TEST(FedLayerTest, FindsTheSourceOfThePhase) {
  const std::string net = R"(
    layer { name: "a" type: "CoSData" top: "x" include { phase: TRAIN } source_class: "DataFrameSource"
      cos_data_param { source: "train.parquet" top { name: "x" } } }
    layer { name: "b" type: "MemoryData" top: "x" include { phase: TEST }
      source_class: "com.yahoo.ml.caffe.ImageDataFrame"
      memory_data_param { source: "test.parquet" dataframe_column_select: "data as d" } })";
  EXPECT_EQ(SourceOf(net)->uri, "train.parquet");
  EXPECT_THAT(SourceOf(net)->columns, ElementsAre("x"));
  EXPECT_EQ(SourceOf(net, caffe::TEST)->uri, "test.parquet");
  EXPECT_THAT(SourceOf(net, caffe::TEST)->columns, ElementsAre("data as d"));
}

TEST(FedLayerTest, NetsWithoutRowsHaveNoSource) {
  EXPECT_FALSE(SourceOf("layer { name: \"d\" type: \"DummyData\" top: \"x\" }"));
  EXPECT_FALSE(SourceOf("layer { name: \"m\" type: \"MemoryData\" top: \"x\" top: \"y\" }"));
}

TEST(FedLayerTest, SourcesThatNeedSparkAreRejectedByName) {
  try {
    SourceOf(
        "layer { name: \"db\" type: \"MemoryData\" top: \"x\" top: \"y\" "
        "source_class: \"com.yahoo.ml.caffe.LMDB\" memory_data_param { source: \"x\" } }");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
    EXPECT_THAT(error.message(), HasSubstr("layer \"db\""));
    EXPECT_THAT(error.message(), HasSubstr("LMDB"));
  }
}

}  // namespace
}  // namespace hearth::trainer
