#include "hearth/feed/pickled_columns.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "hearth/feed/pickle_reader.h"

namespace hearth::feed {
namespace {

// Notes numbers as they come, and where lists and tuples of them lie. The first list is the rows'.
class ColumnBuilder {
 public:
  enum class Kind : uint8_t { kInt, kFloat, kList, kTuple, kFailed };
  struct Value {
    Kind kind = Kind::kFailed;
    uint64_t bits = 0;  // of a number; else the index of the list or tuple
  };
  // Numbers of a list in numbers(), or fields of a tuple in fields().
  struct Part {
    size_t begin = 0, count = 0;
    Kind kind = Kind::kInt;  // of a list's numbers
  };

  // `bytes` of the pickle: a float takes nine of them.
  explicit ColumnBuilder(size_t bytes) { numbers_.reserve(bytes / 9); }

  static Value Int(int64_t value) { return {Kind::kInt, std::bit_cast<uint64_t>(value)}; }
  static Value Float(double value) { return {Kind::kFloat, std::bit_cast<uint64_t>(value)}; }
  static Value None() { return {}; }
  static Value Bool(bool) { return {}; }
  static Value Text(std::string_view) { return {}; }
  static Value Bytes(std::string_view) { return {}; }
  static Value Dict() { return {}; }
  static Value Again(Value value) { return value; }
  static bool Failed(Value value) { return value.kind == Kind::kFailed; }
  static void Drop(Value) {}
  static bool SetItems(Value, std::span<Value>) { return false; }

  Value List(std::span<Value> items) {
    lists_.push_back({numbers_.size(), 0, Kind::kInt});
    const Value list{Kind::kList, lists_.size() - 1};
    return AddNumbers(&lists_.back(), items) ? list : Value{};
  }
  Value Tuple(std::span<Value> items) {
    tuples_.push_back({fields_.size(), items.size(), Kind::kTuple});
    fields_.insert(fields_.end(), items.begin(), items.end());
    return {Kind::kTuple, tuples_.size() - 1};
  }
  bool Extend(Value list, std::span<Value> items) {
    if (list.kind != Kind::kList) return false;
    const bool numbers = items.empty() || IsNumber(items[0]);
    if (list.bits != 0 || numbers) {
      return (list.bits != 0 || rows_.empty()) && AddNumbers(&lists_[list.bits], items);
    }
    rows_.insert(rows_.end(), items.begin(), items.end());
    return lists_[0].count == 0;
  }

  // Once, after everything else.
  std::optional<PickledColumns> Columns(Value root) {
    if (root.kind != Kind::kList || root.bits != 0) return std::nullopt;
    PickledColumns found;
    if (rows_.empty()) return Numbers();
    found.rows = static_cast<int64_t>(rows_.size());
    found.tuples = rows_[0].kind == Kind::kTuple;
    if (!found.tuples) {
      auto column = ColumnOf(rows_);
      if (!column) return std::nullopt;
      found.columns.push_back(std::move(*column));
      return found;
    }
    std::vector<Value> values(rows_.size());
    for (size_t field = 0; field < tuples_[rows_[0].bits].count; ++field) {
      for (size_t row = 0; row < rows_.size(); ++row) {
        if (rows_[row].kind != Kind::kTuple) return std::nullopt;
        const Part& tuple = tuples_[rows_[row].bits];
        if (tuple.count != tuples_[rows_[0].bits].count) return std::nullopt;
        values[row] = fields_[tuple.begin + field];
      }
      auto column = ColumnOf(values);
      if (!column) return std::nullopt;
      found.columns.push_back(std::move(*column));
    }
    return found.columns.empty() ? std::nullopt : std::optional(std::move(found));
  }

 private:
  static bool IsNumber(Value value) {
    return value.kind == Kind::kInt || value.kind == Kind::kFloat;
  }

  // False where they are not numbers of the list's type, or others came after the list's own.
  bool AddNumbers(Part* list, std::span<Value> items) {
    if (items.empty()) return true;
    if (list->count == 0) *list = {numbers_.size(), 0, items[0].kind};
    if (list->begin + list->count != numbers_.size()) return false;
    for (const Value& item : items) {
      if (item.kind != list->kind || !IsNumber(item)) return false;
      numbers_.push_back(item.bits);
    }
    list->count += items.size();
    return true;
  }

  // Rows that are numbers.
  std::optional<PickledColumns> Numbers() {
    const Part& list = lists_[0];
    if (list.count == 0 || list.count != numbers_.size()) return std::nullopt;
    PickledColumns found;
    found.rows = static_cast<int64_t>(list.count);
    found.columns.push_back({list.kind == Kind::kFloat, 0, std::move(numbers_)});
    return found;
  }

  std::optional<NumberColumn> ColumnOf(std::span<const Value> values) {
    const Kind kind = values[0].kind;
    for (const Value& value : values) {
      if (value.kind != kind) return std::nullopt;
    }
    if (kind == Kind::kList) return ColumnOfLists(values);
    if (!IsNumber(values[0])) return std::nullopt;
    NumberColumn column{kind == Kind::kFloat, 0, {}};
    column.values.reserve(values.size());
    for (const Value& value : values) column.values.push_back(value.bits);
    return column;
  }

  std::optional<NumberColumn> ColumnOfLists(std::span<const Value> values) {
    const Part& first = lists_[values[0].bits];
    if (first.count == 0) return std::nullopt;
    bool all_lists = lists_.size() == values.size() + 1;  // besides the rows', and in their order
    for (size_t row = 0; row < values.size(); ++row) {
      const Part& list = lists_[values[row].bits];
      if (list.count != first.count || list.kind != first.kind) return std::nullopt;
      all_lists = all_lists && values[row].bits == row + 1;
    }
    NumberColumn column{first.kind == Kind::kFloat, static_cast<int64_t>(first.count), {}};
    if (all_lists) {
      column.values = std::move(numbers_);
      return column;
    }
    column.values.reserve(values.size() * first.count);
    for (const Value& value : values) {
      const uint64_t* const begin = &numbers_[lists_[value.bits].begin];
      column.values.insert(column.values.end(), begin, begin + first.count);
    }
    return column;
  }

  std::vector<uint64_t> numbers_;
  std::vector<Value> rows_, fields_;
  std::vector<Part> lists_, tuples_;
};

}  // namespace

std::optional<PickledColumns> ReadPickledColumns(std::string_view pickle) {
  ColumnBuilder builder(pickle.size());
  PickleReader reader(pickle, &builder);
  const auto root = reader.Read();
  return root ? builder.Columns(*root) : std::nullopt;
}

}  // namespace hearth::feed
