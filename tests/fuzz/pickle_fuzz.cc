// Pickled rows: for any bytes, each created value must be dropped or returned exactly once, and
// columns must contain the same values as the rows.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "hearth/formats/pickle_guard.h"
#include "hearth/formats/pickle_reader.h"
#include "hearth/formats/pickled_columns.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

namespace {

// Counts the values that exist; a value is only its kind.
struct CountingBuilder {
  enum Value { kPlain, kList, kDict, kFailed };

  Value Make(Value value = kPlain) {
    ++handles;
    return value;
  }
  Value None() { return Make(); }
  Value Bool(bool) { return Make(); }
  Value Int(int64_t) { return Make(); }
  Value Float(double) { return Make(); }
  Value Text(std::string_view text) { return text.ends_with('x') ? kFailed : Make(); }
  Value Bytes(std::string_view) { return Make(); }
  Value Dict() { return Make(kDict); }
  Value Again(Value value) { return Make(value); }
  bool Failed(Value value) { return value == kFailed; }
  void Drop(Value) { --handles; }
  Value List(std::span<Value> items) {
    handles -= static_cast<int64_t>(items.size());
    return Make(kList);
  }
  Value Tuple(std::span<Value> items) {
    handles -= static_cast<int64_t>(items.size());
    return Make();
  }
  bool Extend(Value list, std::span<Value> items) {
    handles -= static_cast<int64_t>(items.size());
    return list == kList;
  }
  bool SetItems(Value dict, std::span<Value> items) {
    handles -= static_cast<int64_t>(items.size());
    return dict == kDict;
  }

  int64_t handles = 0;
};

// Builds each row separately, even if rows share lists or tuples; columns are compared with these.
struct RowsBuilder {
  enum class Kind { kFailed, kInt, kFloat, kList, kTuple, kOther };
  struct Node {
    Kind kind = Kind::kOther;
    uint64_t bits = 0;
    std::vector<size_t> items;
  };
  using Value = size_t;  // index of a node; 0: no value

  Value Make(Kind kind, uint64_t bits = 0, std::span<Value> items = {}) {
    nodes.push_back({kind, bits, {items.begin(), items.end()}});
    return nodes.size() - 1;
  }
  Value None() { return Make(Kind::kOther); }
  Value Bool(bool) { return Make(Kind::kOther); }
  Value Int(int64_t value) { return Make(Kind::kInt, std::bit_cast<uint64_t>(value)); }
  Value Float(double value) { return Make(Kind::kFloat, std::bit_cast<uint64_t>(value)); }
  Value Text(std::string_view) { return Make(Kind::kOther); }
  Value Bytes(std::string_view) { return Make(Kind::kOther); }
  Value Dict() { return Make(Kind::kOther); }
  Value Again(Value value) { return value; }
  bool Failed(Value value) { return value == 0; }
  void Drop(Value) {}
  Value List(std::span<Value> items) { return Make(Kind::kList, 0, items); }
  Value Tuple(std::span<Value> items) { return Make(Kind::kTuple, 0, items); }
  bool Extend(Value list, std::span<Value> items) {
    nodes[list].items.insert(nodes[list].items.end(), items.begin(), items.end());
    return nodes[list].kind == Kind::kList;
  }
  bool SetItems(Value, std::span<Value>) { return true; }

  // Whether `column` contains the rows' field `*field`, or (null) the rows themselves.
  bool Is(const formats::NumberColumn& column, const std::vector<size_t>& rows,
          const size_t* field) {
    const Kind kind = column.floating ? Kind::kFloat : Kind::kInt;
    size_t at = 0;
    const auto same = [&](size_t number) {
      return nodes[number].kind == kind && nodes[number].bits == column.values.at(at++);
    };
    for (const size_t row : rows) {
      const Node& value = nodes[field == nullptr ? row : nodes[row].items.at(*field)];
      if (column.width == 0 && !same(static_cast<size_t>(&value - nodes.data()))) return false;
      if (column.width == 0) continue;
      if (value.kind != Kind::kList || std::ssize(value.items) != column.width) return false;
      if (!std::ranges::all_of(value.items, same)) return false;
    }
    return at == column.values.size();
  }

  std::vector<Node> nodes = std::vector<Node>(1);
};

void CompareWithRows(std::string_view pickle, const formats::PickledColumns& found) {
  RowsBuilder builder;
  const auto root = formats::PickleReader(pickle, &builder).Read();
  if (!root || builder.nodes[*root].kind != RowsBuilder::Kind::kList) __builtin_trap();
  const std::vector<size_t>& rows = builder.nodes[*root].items;
  if (std::ssize(rows) != found.rows) __builtin_trap();
  for (size_t i = 0; i < found.columns.size(); ++i) {
    if (!builder.Is(found.columns[i], rows, found.tuples ? &i : nullptr)) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  CountingBuilder builder;
  bool whole = false;
  {
    formats::PickleReader reader(fuzz::Text(data, size), &builder);
    whole = reader.Read().has_value();
  }
  if (builder.handles != (whole ? 1 : 0)) __builtin_trap();
  formats::PickleIsSound(fuzz::Text(data, size));
  if (const auto found = formats::ReadPickledColumns(fuzz::Text(data, size))) {
    CompareWithRows(fuzz::Text(data, size), *found);
  }
  return 0;
}
