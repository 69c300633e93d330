// Converts tf.train.Example messages to columns and back. Implements the wire format itself: a
// second protobuf library would clash with TensorFlow's in one process.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/formats/tf_example_shape.h"

namespace hearth::formats {

enum class FeatureKind { kNone = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };

// One feature over many examples, in Arrow's layout: row i has the values [row_offsets[i],
// row_offsets[i + 1]), and value j of a bytes list is at [byte_offsets[j], byte_offsets[j + 1]).
struct FeatureColumn {
  std::string name;
  FeatureKind kind = FeatureKind::kNone;
  std::vector<float> floats = {};
  std::vector<int64_t> ints = {};
  std::string bytes = {};  // all values, concatenated
  std::vector<int64_t> byte_offsets = {0};
  std::vector<int64_t> row_offsets = {0};
  std::vector<uint8_t> present = {};  // 1 if the example has the feature, even without values

  int64_t values() const;
};

// Collects selected features of examples. Not thread-safe.
class ExampleColumns {
 public:
  explicit ExampleColumns(std::vector<FeatureColumn> columns);
  ExampleColumns(const ExampleColumns&) = delete;
  ExampleColumns& operator=(const ExampleColumns&) = delete;

  // Adds a row; ignores features that were not selected. Throws kDataLoss for a malformed example,
  // kInvalidArgument if a feature has another kind than its column; the columns are invalid after
  // an error.
  void Add(std::string_view example);

  int64_t rows() const { return rows_; }
  std::vector<FeatureColumn>& columns() { return columns_; }

 private:
  // Layout of the examples of one size class. In one file, these mostly differ only in their
  // values.
  struct Layout {
    ExampleShape shape;
    std::vector<uint8_t> present;  // per column
    int misses = 0;                // number of consecutive mismatches
  };

  // Returns the column of the example's feature number `index`; null if the feature was not
  // selected.
  FeatureColumn* Find(size_t index, std::string_view name);
  void AddByLayout(const Layout& layout, std::string_view example);
  // Parses the example and adds its values. Returns their locations; nullopt if some numbers are
  // not packed.
  std::optional<std::vector<ExampleShape::Run>> AddByParsing(std::string_view example);

  // Name of a feature, and its column.
  struct CachedFeature {
    std::string name;
    FeatureColumn* column;
  };

  std::vector<FeatureColumn> columns_;
  std::map<std::string, FeatureColumn*, std::less<>> by_name_;
  std::vector<CachedFeature>
      previous_;                   // features of the previous example: most files keep one order
  std::array<Layout, 8> layouts_;  // by size modulo 8
  int64_t rows_ = 0;
};

// Calls visit(name, kind, number of values) for each feature. Throws kDataLoss.
void ForEachFeature(std::string_view example,
                    const std::function<void(std::string_view, FeatureKind, int64_t)>& visit);

}  // namespace hearth::formats
