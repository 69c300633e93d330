#include "hearth/caffe/data/row_values.h"

#include <charconv>

#include "hearth/base/error.h"

namespace hearth::caffe {

std::string RowId(const dataset::Minibatch::Row& row, int64_t number) {
  // The names of the id column in CaffeOnSpark's data frames and in its results.
  for (const char* name : {"id", "SampleID"}) {
    const batch::ColumnView* column = row.batch->FindColumn(name);
    if (column != nullptr && !column->IsNull(row.index)) return column->AsText(row.index);
  }
  return fmt::format("{:08}", number);
}

const batch::ColumnView& ColumnWithValue(const dataset::Minibatch::Row& row,
                                         std::string_view name) {
  const batch::ColumnView& column = row.batch->column(name);
  Require(!column.IsNull(row.index), ErrorCode::kDataLoss, "column '{}' is null", name);
  return column;
}

bool HoldsBytes(const batch::ColumnView& column) {
  if (!batch::IsList(column.type())) return batch::IsBytes(column.type());
  const batch::ColumnType item = column.children()[0].type();
  return item == batch::ColumnType::kInt8 || item == batch::ColumnType::kUint8;
}

float NumberAt(const batch::ColumnView& column, int64_t row) {
  if (!batch::IsBytes(column.type())) return static_cast<float>(column.AsDouble(row));
  // Skips blanks and a plus sign, which from_chars rejects. Scala's toFloat, with which
  // CaffeOnSpark reads these columns, accepts both.
  std::string_view text = column.Bytes(row);
  const size_t first = text.find_first_not_of(" \t+"), last = text.find_last_not_of(" \t\r\n");
  text = first == std::string_view::npos ? "" : text.substr(first, last - first + 1);
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  Require(error == std::errc() && end == text.data() + text.size() && !text.empty(),
          ErrorCode::kDataLoss, "column '{}' has the text '{}', which is not a number",
          column.name(), text.substr(0, 40));
  return value;
}

}  // namespace hearth::caffe
