#include "hearth/formats/pickled_columns.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "hearth/formats/pickle_reader.h"

namespace hearth::formats {
namespace {

// Builder of a PickleReader. Stores all numbers in order, and for each list or tuple the range of
// its items. The first list is the list of rows.
class ColumnBuilder {
 public:
  enum class Kind : uint8_t { kInt, kFloat, kList, kTuple, kFailed };
  struct Value {
    Kind kind = Kind::kFailed;
    uint64_t bits = 0;  // a number's bits, or the list's or tuple's index
  };
  // Range of a list's numbers in numbers_, or of a tuple's fields in fields_.
  struct Part {
    size_t begin = 0, count = 0;
    Kind kind = Kind::kInt;  // type of a list's numbers
  };

  // `bytes`: size of the pickle, in which a float takes nine bytes.
  explicit ColumnBuilder(size_t bytes) : most_numbers_(bytes * kNumbersPerByte) {
    numbers_.reserve(bytes / 9);
  }

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
  // Copies the fields, because the reader reuses its stack after the call.
  Value Tuple(std::span<Value> items) {
    tuples_.push_back({fields_.size(), items.size(), Kind::kTuple});
    fields_.insert(fields_.end(), items.begin(), items.end());
    return {Kind::kTuple, tuples_.size() - 1};
  }
  bool Extend(Value list, std::span<Value> items) {
    if (list.kind != Kind::kList) return false;
    const bool numbers = items.empty() || IsNumber(items[0]);
    // Only the list of rows, number 0, may contain lists or tuples, and all rows must be of one
    // kind.
    if (list.bits != 0 || numbers) {
      return (list.bits != 0 || rows_.empty()) && AddNumbers(&lists_[list.bits], items);
    }
    rows_.insert(rows_.end(), items.begin(), items.end());
    return lists_[0].count == 0;
  }

  // Returns the columns. Call once, after all other calls.
  std::optional<PickledColumns> Columns(Value root) {
    if (root.kind != Kind::kList || root.bits != 0) return std::nullopt;
    PickledColumns found;
    if (rows_.empty()) return Numbers();
    found.rows = static_cast<int64_t>(rows_.size());
    found.tuples = rows_[0].kind == Kind::kTuple;
    const bool whole = found.tuples ? AddFields(&found) : AddColumn(rows_, true, &found);
    return whole && !found.columns.empty() ? std::optional(std::move(found)) : std::nullopt;
  }

 private:
  static bool IsNumber(Value value) {
    return value.kind == Kind::kInt || value.kind == Kind::kFloat;
  }

  // Returns false if an item is not a number of the list's type, or if the list's numbers would not
  // be contiguous.
  bool AddNumbers(Part* list, std::span<Value> items) {
    if (items.empty()) return true;
    if (list->count == 0) *list = {numbers_.size(), 0, items[0].kind};
    // A list may arrive in several parts, because Python's pickler writes 1,000 items at a time.
    // Its numbers are contiguous unless another list lies between the parts.
    if (list->begin + list->count != numbers_.size()) return false;
    for (const Value& item : items) {
      if (item.kind != list->kind || !IsNumber(item)) return false;
      numbers_.push_back(item.bits);
    }
    list->count += items.size();
    return true;
  }

  // Builds the result for rows that are numbers.
  std::optional<PickledColumns> Numbers() {
    const Part& list = lists_[0];
    if (list.count == 0 || list.count != numbers_.size()) return std::nullopt;
    PickledColumns found;
    found.rows = static_cast<int64_t>(list.count);
    found.columns.push_back({list.kind == Kind::kFloat, 0, std::move(numbers_)});
    return found;
  }

  // Builds the result for rows that are tuples: one column per field.
  bool AddFields(PickledColumns* found) {
    const Part& first = tuples_[rows_[0].bits];
    for (const Value& row : rows_) {
      if (row.kind != Kind::kTuple || tuples_[row.bits].count != first.count) return false;
    }
    const std::span<const Value> fields = std::span(fields_).subspan(first.begin, first.count);
    const auto last_lists =
        std::ranges::find(fields.rbegin(), fields.rend(), Kind::kList, &Value::kind);
    std::vector<Value> values(rows_.size());
    for (size_t field = 0; field < first.count; ++field) {
      for (size_t row = 0; row < rows_.size(); ++row) {
        values[row] = fields_[tuples_[rows_[row].bits].begin + field];
      }
      const bool last = field + 1 == static_cast<size_t>(fields.rend() - last_lists);
      if (!AddColumn(values, last, found)) return false;
    }
    return true;
  }

  // Adds a column of these values. `last`: no later column has lists, so this column may move the
  // numbers out instead of copying them.
  bool AddColumn(std::span<const Value> values, bool last, PickledColumns* found) {
    const Kind kind = values[0].kind;
    for (const Value& value : values) {
      if (value.kind != kind) return false;
    }
    const size_t width = kind == Kind::kList ? lists_[values[0].bits].count : 1;
    // Compares by a division, because the product may overflow.
    if (width > (most_numbers_ - used_numbers_) / values.size()) return false;
    used_numbers_ += width * values.size();
    auto column = kind == Kind::kList ? ColumnOfLists(values, last) : ColumnOfNumbers(values);
    if (!column) return false;
    found->columns.push_back(std::move(*column));
    return true;
  }

  static std::optional<NumberColumn> ColumnOfNumbers(std::span<const Value> values) {
    if (!IsNumber(values[0])) return std::nullopt;
    NumberColumn column{values[0].kind == Kind::kFloat, 0, {}};
    column.values.reserve(values.size());
    for (const Value& value : values) column.values.push_back(value.bits);
    return column;
  }

  std::optional<NumberColumn> ColumnOfLists(std::span<const Value> values, bool last) {
    const Part& first = lists_[values[0].bits];
    if (first.count == 0) return std::nullopt;
    // If the rows are all lists but the first, in order, numbers_ already is the column.
    bool all_lists = last && lists_.size() == values.size() + 1;
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

  // Limits the columns' size: a pickle repeats a list by a reference of two bytes, so columns could
  // be far larger than the pickle, whereas Python's rows share the list. Each distinct number takes
  // two bytes or more.
  static constexpr size_t kNumbersPerByte = 8;

  size_t most_numbers_ = 0, used_numbers_ = 0;  // totals over all columns
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

}  // namespace hearth::formats
