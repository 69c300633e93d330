#include "hearth/dataset/gather.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "hearth/base/error.h"
#include "hearth/dataset/column_ranges.h"
#include "hearth/dataset/same_columns.h"

namespace hearth::dataset {
namespace {

using batch::BatchView;
using batch::ColumnType;
using batch::ColumnView;

bool IsNumber(ColumnType type) { return type <= ColumnType::kFloat64; }
bool IsFloat(ColumnType type) {
  return type == ColumnType::kFloat32 || type == ColumnType::kFloat64;
}

GatheredColumn::Kind KindOfColumn(const ColumnView& column) {
  if (IsNumber(column.type())) return GatheredColumn::Kind::kNumbers;
  if (batch::IsBytes(column.type())) return GatheredColumn::Kind::kBytes;
  const bool list = batch::IsList(column.type()) && IsNumber(column.children()[0].type());
  return list ? GatheredColumn::Kind::kLists : GatheredColumn::Kind::kOther;
}

bool AnyNull(const ColumnView& values, ItemRange range) {
  if (values.buffers().validity == nullptr) return false;
  for (int64_t i = range.begin; i < range.end; ++i) {
    if (values.IsNull(i)) return true;
  }
  return false;
}

constexpr size_t kCacheLine = 64;
// Number of rows that are prefetched together, so that their memory latencies overlap.
constexpr int64_t kRowsAtOnce = 64;

}  // namespace

GatheredColumn::GatheredColumn(std::shared_ptr<const SelectedRows> rows, std::string_view name)
    : rows_(std::move(rows)), name_(name) {
  Require(rows_->schema != nullptr, ErrorCode::kInvalidArgument,
          "cannot read column '{}': the dataset has no rows, so its columns are unknown", name);
  const std::vector<ColumnView>& columns = rows_->schema->columns();
  column_ = ColumnNamed(columns, name);
  kind_ = KindOfColumn(columns[column_]);
  if (kind_ == Kind::kNumbers) number_type_ = columns[column_].type();
  if (kind_ == Kind::kLists) number_type_ = columns[column_].children()[0].type();
}

bool GatheredColumn::is_text() const {
  const ColumnType type = rows_->schema->columns()[column_].type();
  return type == ColumnType::kUtf8 || type == ColumnType::kLargeUtf8;
}

int64_t GatheredColumn::NumberBytes(ColumnType type) {
  return type == ColumnType::kBool ? 1 : batch::NumberWidth(type);
}

// Copies `bytes` bytes for each row, from the address source(view, row). Each random row costs a
// cache miss; a list costs up to three, one after another: for its offsets, its values and the next
// cache line. Three passes over 64 rows let the misses of each step overlap.
template <typename Source>
void GatheredColumn::CopyBlocks(size_t bytes, std::byte* to, Source source) const {
  std::array<const uint8_t*, kRowsAtOnce> from;
  std::array<const ColumnView*, kRowsAtOnce> views;
  const auto& refs = rows_->refs;
  for (int64_t begin = 0; begin < rows_->size(); begin += kRowsAtOnce) {
    const auto count = static_cast<size_t>(std::min(kRowsAtOnce, rows_->size() - begin));
    const auto* block = refs.data() + begin;
    const BatchView* batch = nullptr;
    for (size_t i = 0; i < count; ++i) {
      const bool same = block[i].batch == batch;
      batch = block[i].batch;
      views[i] = same ? views[i - 1] : &ViewOf(*batch);
      if (kind_ == Kind::kLists) views[i]->PrefetchEntry(block[i].row);
    }
    for (size_t i = 0; i < count; ++i) {
      from[i] = source(*views[i], block[i].row);
      __builtin_prefetch(from[i]);
      if (bytes > kCacheLine) __builtin_prefetch(from[i] + kCacheLine);
    }
    for (size_t i = 0; i < count; ++i, to += bytes) {
      // Constant sizes compile to plain loads and stores instead of a call.
      if (bytes == 4) {
        std::memcpy(to, from[i], 4);
      } else if (bytes == 0) {
        // Empty values may have no address to copy from.
        break;
      } else if (bytes == 8) {
        std::memcpy(to, from[i], 8);
      } else {
        std::memcpy(to, from[i], bytes);
      }
    }
  }
}

void GatheredColumn::CopyNumbers(std::byte* to) const {
  const auto width = static_cast<size_t>(NumberBytes(number_type_));
  // Bools are bits in a batch and bytes in an array, so they cannot be copied as blocks.
  bool plain = number_type_ != ColumnType::kBool;
  const BatchView* batch = nullptr;
  for (const auto& ref : rows_->refs) {
    // Neighbours are mostly in the same batch, so its buffers are examined once per run of rows.
    if (ref.batch == batch) continue;
    batch = ref.batch;
    plain &= ViewOf(*batch).buffers().validity == nullptr;
  }
  if (!plain) {
    CopyOneByOne(to);
    return;
  }
  CopyBlocks(width, to, [width](const ColumnView& view, int64_t row) {
    return view.buffers().data + static_cast<size_t>(row) * width;
  });
}

// Copies bools, and numbers if any batch has a validity buffer.
void GatheredColumn::CopyOneByOne(std::byte* to) const {
  const int64_t width = NumberBytes(number_type_);
  for (const auto& [batch, row] : rows_->refs) {
    const ColumnView& view = ViewOf(*batch);
    if (view.IsNull(row) && !IsFloat(number_type_)) ThrowNulls();
    CopyItems(view, row, 1, to);
    to += width;
  }
}

void GatheredColumn::CopyItems(const ColumnView& values, int64_t begin, int64_t count,
                               std::byte* to) const {
  if (count == 0) return;
  const uint8_t* data = values.buffers().data;
  if (number_type_ == ColumnType::kBool) {
    for (int64_t i = begin; i < begin + count; ++i) {
      *to++ = static_cast<std::byte>(data[i >> 3] >> (i & 7) & 1);
    }
    return;
  }
  const int64_t width = batch::NumberWidth(number_type_);
  std::memcpy(to, data + begin * width, static_cast<size_t>(count * width));
  if (IsFloat(number_type_)) WriteNaNs(values, begin, count, to);
}

// Overwrites nulls with NaN, because bytes under a null are undefined.
void GatheredColumn::WriteNaNs(const ColumnView& values, int64_t begin, int64_t count,
                               std::byte* to) const {
  if (values.buffers().validity == nullptr) return;
  for (int64_t i = 0; i < count; ++i) {
    if (!values.IsNull(begin + i)) continue;
    if (number_type_ == ColumnType::kFloat32) {
      const float nan = std::numeric_limits<float>::quiet_NaN();
      std::memcpy(to + i * static_cast<int64_t>(sizeof(nan)), &nan, sizeof(nan));
    } else {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      std::memcpy(to + i * static_cast<int64_t>(sizeof(nan)), &nan, sizeof(nan));
    }
  }
}

int64_t GatheredColumn::FirstLength() const {
  // If there are no rows, only a fixed-size list has a length.
  if (rows_->refs.empty()) return rows_->schema->columns()[column_].list_size();
  return LengthOf(0);
}

int64_t GatheredColumn::LengthOf(int64_t row) const {
  const auto& ref = rows_->refs[static_cast<size_t>(row)];
  const ColumnView& view = ViewOf(*ref.batch);
  if (view.IsNull(ref.row)) return -1;
  const ItemRange range = ItemsOf(view, ref.row);
  return range.end - range.begin;
}

void GatheredColumn::CopyLists(int64_t length, std::byte* to) const {
  if (length < 0) ThrowNulls();
  bool plain = number_type_ != ColumnType::kBool;
  const BatchView* batch = nullptr;
  for (const auto& ref : rows_->refs) {
    if (ref.batch == batch) continue;
    batch = ref.batch;
    const ColumnView& view = ViewOf(*batch);
    plain &= view.buffers().validity == nullptr && view.children()[0].buffers().validity == nullptr;
  }
  const auto bytes = static_cast<size_t>(length * NumberBytes(number_type_));
  if (!plain) {
    for (int64_t row = 0; row < rows_->size(); ++row, to += bytes) {
      const int64_t other = LengthOf(row);
      if (other < 0) ThrowNulls();
      if (other != length) ThrowLengths(length);
      CopyList(row, to);
    }
    return;
  }
  const int64_t width = batch::NumberWidth(number_type_);
  CopyBlocks(bytes, to, [&](const ColumnView& view, int64_t row) {
    const ItemRange range = ItemsOf(view, row);
    if (range.end - range.begin != length) ThrowLengths(length);
    return view.children()[0].buffers().data + range.begin * width;
  });
}

void GatheredColumn::CopyList(int64_t row, std::byte* to) const {
  const auto& ref = rows_->refs[static_cast<size_t>(row)];
  const ColumnView& view = ViewOf(*ref.batch);
  const ItemRange range = ItemsOf(view, ref.row);
  const ColumnView& items = view.children()[0];
  if (!IsFloat(number_type_) && AnyNull(items, range)) ThrowNulls();
  CopyItems(items, range.begin, range.end - range.begin, to);
}

std::optional<std::string_view> GatheredColumn::BytesOf(int64_t row) const {
  const auto& ref = rows_->refs[static_cast<size_t>(row)];
  const ColumnView& view = ViewOf(*ref.batch);
  if (view.IsNull(ref.row)) return std::nullopt;
  return view.Bytes(ref.row);
}

// Throws an error with the number of nulls. They are counted here rather than in the loops above,
// to keep those fast.
void GatheredColumn::ThrowNulls() const {
  int64_t nulls = 0, values = 0;
  for (const auto& [batch, row] : rows_->refs) {
    const ColumnView& view = ViewOf(*batch);
    ++values;
    nulls += view.IsNull(row) ? 1 : 0;
  }
  if (nulls == 0) {  // the nulls are inside lists
    values = 0;
    for (const auto& [batch, row] : rows_->refs) {
      const ColumnView& view = ViewOf(*batch);
      const ItemRange range = ItemsOf(view, row);
      values += range.end - range.begin;
      for (int64_t i = range.begin; i < range.end; ++i) nulls += view.children()[0].IsNull(i);
    }
  }
  Throw(ErrorCode::kInvalidArgument,
        "column '{}' ({}) has nulls ({} of {} values), which an array of its type cannot hold: "
        "drop or fill them in Spark (na.drop, coalesce)",
        name_, TypeName(rows_->schema->columns()[column_]), nulls, values);
}

void GatheredColumn::ThrowLengths(int64_t length) const {
  int64_t row = 0;
  while (LengthOf(row) == length) ++row;
  Throw(ErrorCode::kInvalidArgument,
        "column '{}' has lists of different lengths ({} in row {}, {} before it), which do not "
        "form an array: pad them in Spark, or read them as ragged",
        name_, std::max<int64_t>(0, LengthOf(row)), rows_->indices[static_cast<size_t>(row)],
        length);
}

}  // namespace hearth::dataset
