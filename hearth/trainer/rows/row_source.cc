#include "hearth/trainer/rows/row_source.h"

#include "hearth/base/error.h"
#include "hearth/caffe/net/net_filter.h"

namespace hearth::trainer {
namespace {

RowSource MemoryDataSource(const caffe::LayerParameter& layer) {
  const auto& param = layer.memory_data_param();
  return {layer.name(), param.source(), param.dataframe_format(), param.dataframe_column_select()};
}

RowSource CoSDataSource(const caffe::LayerParameter& layer) {
  const auto& param = layer.cos_data_param();
  RowSource source{layer.name(), param.source(), param.dataframe_format(), {}};
  for (const auto& top : param.top()) source.columns.push_back(top.name());
  return source;
}

}  // namespace

std::optional<RowSource> RowSourceOf(const caffe::NetParameter& net) {
  const caffe::NetParameter filtered = caffe::FilterNet(net);
  for (const auto& layer : filtered.layer()) {
    const bool memory_data = layer.type() == "MemoryData" && layer.has_source_class();
    if (!memory_data && layer.type() != "CoSData") continue;
    RowSource source = memory_data ? MemoryDataSource(layer) : CoSDataSource(layer);
    const std::string& reader = layer.source_class();
    Require(
        reader.ends_with("DataFrameSource") || reader.ends_with("ImageDataFrame"),
        ErrorCode::kUnimplemented,
        "layer \"{}\": without Spark, source_class \"{}\" cannot be read yet; use a Parquet file "
        "with ImageDataFrame or DataFrameSource",
        layer.name(), reader);
    Require(source.format == "parquet", ErrorCode::kUnimplemented,
            "layer \"{}\": dataframe_format \"{}\" needs Spark; without it only parquet is read",
            layer.name(), source.format);
    Require(!source.uri.empty(), ErrorCode::kInvalidArgument, "layer \"{}\" has no source",
            layer.name());
    return source;
  }
  return std::nullopt;
}

}  // namespace hearth::trainer
