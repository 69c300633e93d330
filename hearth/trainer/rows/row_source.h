// Finds the source of a net's rows in its prototxt, for running without Spark.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hearth/caffe/proto/messages.h"

namespace hearth::trainer {

// Files that a layer of the net reads its rows from.
struct RowSource {
  std::string layer;
  std::string uri;
  std::string format;                // "parquet"
  std::vector<std::string> columns;  // empty: all
};

// Returns the source of the layer that is fed by rows in the net's state (phase, level, stages), or
// nullopt if no layer is. Throws kUnimplemented, naming the layer, for sources that need Spark or
// are not supported.
std::optional<RowSource> RowSourceOf(const caffe::NetParameter& net);

}  // namespace hearth::trainer
