#include "hearth/dataset/same_columns.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/dataset/column_ranges.h"

namespace hearth::dataset {
namespace {

using batch::ColumnType;
using batch::ColumnView;

// Spark and Arrow choose the width of offsets by size, so it may differ between batches of one
// column.
ColumnType KindOf(const ColumnView& column) {
  switch (column.type()) {
    case ColumnType::kLargeUtf8:
      return ColumnType::kUtf8;
    case ColumnType::kLargeBinary:
    case ColumnType::kFileBinary:
      return ColumnType::kBinary;
    case ColumnType::kLargeList:
      return ColumnType::kList;
    default:
      return column.type();
  }
}

bool SameColumn(const ColumnView& a, const ColumnView& b);

// Ignores the name of a list's only child, because writers use different names for list items.
bool SameType(const ColumnView& a, const ColumnView& b) {
  return KindOf(a) == KindOf(b) && a.list_size() == b.list_size() &&
         std::equal(a.children().begin(), a.children().end(), b.children().begin(),
                    b.children().end(), batch::IsList(a.type()) ? SameType : SameColumn);
}

bool SameColumn(const ColumnView& a, const ColumnView& b) {
  return a.name() == b.name() && SameType(a, b);
}

std::string Described(const std::vector<ColumnView>& columns) {
  std::string text;
  for (const ColumnView& column : columns) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", column.name(), TypeName(column));
  }
  return text;
}

}  // namespace

size_t ColumnNamed(const std::vector<ColumnView>& columns, std::string_view name) {
  size_t at = 0;
  // Spark allows several columns with the same name, in which case the name is ambiguous.
  int found = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name() != name) continue;
    ++found;
    at = i;
  }
  if (found == 1) return at;
  std::string names;
  for (const ColumnView& column : columns) {
    names += (names.empty() ? "" : ", ") + std::string(column.name());
  }
  Throw(ErrorCode::kInvalidArgument, "the rows have {} column{} '{}'; their columns are: {}",
        found == 0 ? "no" : fmt::to_string(found), found > 1 ? "s" : "", name, names);
}

std::string TypeName(const ColumnView& column) {
  const ColumnType kind = KindOf(column);
  if (batch::IsList(kind)) return fmt::format("list<{}>", TypeName(column.children()[0]));
  if (kind != ColumnType::kStruct) return std::string(batch::ColumnTypeName(kind));
  std::string fields;
  for (const ColumnView& child : column.children()) {
    fields += fmt::format("{}{}: {}", fields.empty() ? "" : ", ", child.name(), TypeName(child));
  }
  return fmt::format("struct<{}>", fields);
}

void RequireSameColumns(const batch::BatchView& before, const batch::BatchView& batch,
                        int64_t partition) {
  const auto& a = before.columns();
  const auto& b = batch.columns();
  if (std::equal(a.begin(), a.end(), b.begin(), b.end(), SameColumn)) return;
  Throw(ErrorCode::kDataLoss,
        "partition {} has the columns {}, but earlier rows have {}; all rows of a dataset need "
        "the same columns",
        partition, Described(b), Described(a));
}

}  // namespace hearth::dataset
