// tf.train.Example messages to columns and back. Reads and writes the wire format itself:
// TensorFlow and a protobuf library of ours in one process would clash.
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

// One feature over many examples, in Arrow's form: row i has the values
// [row_offsets[i], row_offsets[i + 1]), and value j of a bytes list the bytes
// [byte_offsets[j], byte_offsets[j + 1]).
struct FeatureColumn {
  std::string name;
  FeatureKind kind = FeatureKind::kNone;
  std::vector<float> floats = {};
  std::vector<int64_t> ints = {};
  std::string bytes = {};  // of all values, one after the other
  std::vector<int64_t> byte_offsets = {0};
  std::vector<int64_t> row_offsets = {0};
  std::vector<uint8_t> present = {};  // 1 if the example has the feature, even without values

  int64_t values() const;
};

// Collects chosen features of examples. Not thread-safe.
class ExampleColumns {
 public:
  explicit ExampleColumns(std::vector<FeatureColumn> columns);
  ExampleColumns(const ExampleColumns&) = delete;
  ExampleColumns& operator=(const ExampleColumns&) = delete;

  // Adds a row; features that were not chosen are skipped. Throws kDataLoss for a malformed
  // example, kInvalidArgument where a feature has another kind than its column; then the columns
  // are unusable.
  void Add(std::string_view example);

  int64_t rows() const { return rows_; }
  std::vector<FeatureColumn>& columns() { return columns_; }

 private:
  // Examples of one size: in a file they mostly differ by their values alone.
  struct Known {
    ExampleShape shape;
    std::vector<uint8_t> present;  // per column
    int misses = 0;                // since it matched
  };

  // The column of the example's feature number `place`, null where it was not chosen.
  FeatureColumn* Find(size_t place, std::string_view name);
  void AddAsBefore(const Known& known, std::string_view example);
  // Returns the places of the values; nothing where some numbers are not packed.
  std::optional<std::vector<ExampleShape::Run>> AddByParsing(std::string_view example);

  struct Place {
    std::string name;
    FeatureColumn* column;
  };

  std::vector<FeatureColumn> columns_;
  std::map<std::string, FeatureColumn*, std::less<>> by_name_;
  std::vector<Place> places_;   // the features of an example before: most files have one order
  std::array<Known, 8> known_;  // by size
  int64_t rows_ = 0;
};

// Calls visit(name, kind, number of values) for each feature. Throws kDataLoss.
void ForEachFeature(std::string_view example,
                    const std::function<void(std::string_view, FeatureKind, int64_t)>& visit);

}  // namespace hearth::formats
