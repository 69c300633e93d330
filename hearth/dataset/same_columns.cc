#include "hearth/dataset/same_columns.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "hearth/base/error.h"

namespace hearth::dataset {
namespace {

using feed::ColumnType;
using feed::ColumnView;

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

// The names of lists' items differ among writers, and mean nothing.
bool SameColumn(const ColumnView& a, const ColumnView& b) {
  return a.name() == b.name() && TypeName(a) == TypeName(b) && a.list_size() == b.list_size();
}

std::string Described(const std::vector<ColumnView>& columns) {
  std::string text;
  for (const ColumnView& column : columns) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", column.name(), TypeName(column));
  }
  return text;
}

}  // namespace

std::string TypeName(const ColumnView& column) {
  const ColumnType kind = KindOf(column);
  if (feed::IsList(kind)) return fmt::format("list<{}>", TypeName(column.children()[0]));
  if (kind != ColumnType::kStruct) return std::string(feed::ColumnTypeName(kind));
  std::string fields;
  for (const ColumnView& child : column.children()) {
    fields += fmt::format("{}{}: {}", fields.empty() ? "" : ", ", child.name(), TypeName(child));
  }
  return fmt::format("struct<{}>", fields);
}

void RequireSameColumns(const feed::BatchView& before, const feed::BatchView& batch,
                        int64_t partition) {
  const auto& a = before.columns();
  const auto& b = batch.columns();
  if (std::equal(a.begin(), a.end(), b.begin(), b.end(), SameColumn)) return;
  Throw(ErrorCode::kDataLoss,
        "partition {} has the columns {}, but rows before it have {}; all rows of a dataset need "
        "the same columns",
        partition, Described(b), Described(a));
}

}  // namespace hearth::dataset
