#include "hearth/dataset/copy_rows.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/batch/batch_image.h"
#include "hearth/dataset/column_ranges.h"

namespace hearth::dataset {
namespace {

using batch::BatchView;
using batch::ColumnType;
using batch::ColumnView;

// Consecutive values of a column in one batch.
struct ValueRun {
  const ColumnView* column;
  int64_t begin, count;
};

// A node of the new image. `entry` is complete only after Plan(). The name points into the image of
// the copied rows.
struct CopiedNode {
  batch::ImageNode entry = {};
  std::string_view name;
  std::vector<ValueRun> runs;
};

// An image of runs of values: computes its layout, then writes it.
class RunsImage {
 public:
  explicit RunsImage(int64_t rows) : rows_(rows) {}

  void AddColumn(std::vector<ValueRun> runs, const ColumnView& column) {
    ++columns_;
    AddNode(std::move(runs), column);
  }
  uint64_t Plan();
  void Write(std::span<std::byte> image) const;

 private:
  void AddNode(std::vector<ValueRun> runs, const ColumnView& column);
  void PlanNode(CopiedNode& node);
  uint64_t Reserve(uint64_t bytes) {
    const uint64_t offset = bytes_;
    bytes_ = batch::AlignImage(bytes_ + bytes);
    return offset;
  }

  int64_t rows_;
  uint32_t columns_ = 0;
  std::vector<CopiedNode> nodes_;  // pre-order
  uint64_t bytes_ = 0;
};

int64_t CountOf(const std::vector<ValueRun>& runs) {
  int64_t count = 0;
  for (const ValueRun& run : runs) count += run.count;
  return count;
}

// The items of consecutive lists are consecutive, even those under a null list.
ItemRange ItemsOfRun(const ValueRun& run) {
  if (run.count == 0) return {0, 0};
  return {ItemsOf(*run.column, run.begin).begin,
          ItemsOf(*run.column, run.begin + run.count - 1).end};
}

// A null occupies no bytes in the copy, because the source's bytes under a null are undefined.
std::string_view BytesAt(const ColumnView& column, int64_t row) {
  return column.IsNull(row) ? std::string_view() : column.Bytes(row);
}

// Type of the copied column. Its offsets have 64 bits only if `total` does not fit in 32 bits.
ColumnType CopiedType(ColumnType type, int64_t total) {
  const bool wide = total > INT32_MAX;
  switch (type) {
    case ColumnType::kUtf8:
    case ColumnType::kLargeUtf8:
      return wide ? ColumnType::kLargeUtf8 : ColumnType::kUtf8;
    case ColumnType::kBinary:
    case ColumnType::kLargeBinary:
    case ColumnType::kFileBinary:
      return wide ? ColumnType::kLargeBinary : ColumnType::kBinary;
    case ColumnType::kList:
    case ColumnType::kLargeList:
      return wide ? ColumnType::kLargeList : ColumnType::kList;
    default:
      return type;
  }
}

// Adds nodes in pre-order, as in an image. Each run of rows becomes a run of values in every child.
void RunsImage::AddNode(std::vector<ValueRun> runs, const ColumnView& column) {
  CopiedNode node;
  node.name = column.name();
  node.entry.children = static_cast<uint32_t>(column.children().size());
  node.entry.list_size = static_cast<uint64_t>(column.list_size());
  node.entry.length = static_cast<uint64_t>(CountOf(runs));
  int64_t total = 0;  // string bytes or list items
  std::vector<std::vector<ValueRun>> children(column.children().size());
  for (const ValueRun& run : runs) {
    for (size_t i = 0; i < children.size(); ++i) {
      ItemRange range = {run.begin, run.begin + run.count};
      if (batch::IsList(column.type())) range = ItemsOfRun(run);
      children[i].push_back({&run.column->children()[i], range.begin, range.end - range.begin});
      total += range.end - range.begin;
    }
    for (int64_t i = 0; batch::IsBytes(column.type()) && i < run.count; ++i) {
      total += static_cast<int64_t>(BytesAt(*run.column, run.begin + i).size());
    }
  }
  // The type is set after the loop, because the width of its offsets depends on the total of all
  // runs.
  const ColumnType type = CopiedType(column.type(), total);
  node.entry.type = static_cast<uint32_t>(type);
  if (batch::IsBytes(type)) node.entry.data_bytes = static_cast<uint64_t>(total);
  node.runs = std::move(runs);
  nodes_.push_back(std::move(node));
  for (size_t i = 0; i < children.size(); ++i) {
    AddNode(std::move(children[i]), column.children()[i]);
  }
}

uint64_t RunsImage::Plan() {
  uint64_t name_bytes = 0;
  for (const CopiedNode& node : nodes_) name_bytes += node.name.size();
  const uint64_t table = sizeof(batch::ImageHeader) + nodes_.size() * sizeof(batch::ImageNode);
  bytes_ = batch::AlignImage(table + name_bytes);
  auto name_offset = static_cast<uint32_t>(table);
  for (CopiedNode& node : nodes_) {
    node.entry.name_offset = name_offset;
    node.entry.name_bytes = static_cast<uint32_t>(node.name.size());
    name_offset += node.entry.name_bytes;
    PlanNode(node);
  }
  return bytes_;
}

// Plan() reads no row, because the sizes depend only on the totals computed by AddNode().
void RunsImage::PlanNode(CopiedNode& node) {
  const auto type = static_cast<ColumnType>(node.entry.type);
  const uint64_t length = node.entry.length;
  const bool nulls = std::any_of(node.runs.begin(), node.runs.end(), [](const ValueRun& run) {
    return run.column->buffers().validity != nullptr;
  });
  // The copy has a validity buffer if any run has one.
  if (nulls && length > 0) node.entry.validity = Reserve((length + 7) / 8);
  if (const int64_t width = batch::OffsetWidth(type); width != 0) {
    node.entry.offsets = Reserve((length + 1) * static_cast<uint64_t>(width));
  }
  if (type == ColumnType::kBool) node.entry.data_bytes = (length + 7) / 8;
  if (const int64_t width = batch::NumberWidth(type); width != 0) {
    node.entry.data_bytes = length * static_cast<uint64_t>(width);
  }
  if (node.entry.data_bytes != 0) node.entry.data = Reserve(node.entry.data_bytes);
}

// Sets the bit of each row for which `is_set(column, row)` is true.
template <typename IsSet>
void WriteBits(const CopiedNode& node, std::byte* to, IsSet is_set) {
  std::memset(to, 0, (node.entry.length + 7) / 8);
  int64_t at = 0;
  for (const ValueRun& run : node.runs) {
    for (int64_t i = run.begin; i < run.begin + run.count; ++i, ++at) {
      if (is_set(*run.column, i)) to[at >> 3] |= static_cast<std::byte>(1 << (at & 7));
    }
  }
}

template <typename Offset>
void WriteOffsets(const CopiedNode& node, std::byte* to) {
  auto* ends = reinterpret_cast<Offset*>(to);
  Offset end = *ends = 0;
  // Among the types with offsets, lists have a child, strings and binaries have none.
  const bool bytes = node.entry.children == 0;
  for (const ValueRun& run : node.runs) {
    for (int64_t i = run.begin; i < run.begin + run.count; ++i) {
      if (bytes) {
        end += static_cast<Offset>(BytesAt(*run.column, i).size());
      } else {
        const ItemRange items = ItemsOf(*run.column, i);
        end += static_cast<Offset>(items.end - items.begin);
      }
      *++ends = end;
    }
  }
}

// Numbers are copied run by run. Strings are copied one by one, because they may be in a file or be
// interrupted by nulls.
void WriteData(const CopiedNode& node, std::byte* to) {
  const int64_t width = batch::NumberWidth(static_cast<ColumnType>(node.entry.type));
  for (const ValueRun& run : node.runs) {
    if (width != 0 && run.count > 0) {
      const auto bytes = static_cast<size_t>(run.count * width);
      std::memcpy(to, run.column->buffers().data + run.begin * width, bytes);
      to += bytes;
    }
    for (int64_t i = run.begin; width == 0 && i < run.begin + run.count; ++i) {
      const std::string_view value = BytesAt(*run.column, i);
      if (!value.empty()) std::memcpy(to, value.data(), value.size());
      to += value.size();
    }
  }
}

void WriteBuffers(const CopiedNode& node, std::byte* image) {
  const batch::ImageNode& entry = node.entry;
  const auto type = static_cast<ColumnType>(entry.type);
  if (entry.validity != 0) {
    WriteBits(node, image + entry.validity,
              [](const ColumnView& column, int64_t row) { return !column.IsNull(row); });
  }
  const int64_t width = batch::OffsetWidth(type);
  if (width == 4) WriteOffsets<int32_t>(node, image + entry.offsets);
  if (width == 8) WriteOffsets<int64_t>(node, image + entry.offsets);
  if (entry.data == 0) return;
  if (type == ColumnType::kBool) {
    WriteBits(node, image + entry.data, [](const ColumnView& column, int64_t row) {
      return (column.buffers().data[row >> 3] >> (row & 7) & 1) != 0;
    });
  } else {
    WriteData(node, image + entry.data);
  }
}

void RunsImage::Write(std::span<std::byte> image) const {
  const batch::ImageHeader header = {batch::kImageMagic, batch::kImageVersion,
                                     image.size(),       static_cast<uint64_t>(rows_),
                                     columns_,           static_cast<uint32_t>(nodes_.size())};
  std::memcpy(image.data(), &header, sizeof(header));
  std::byte* entry = image.data() + sizeof(header);
  for (const CopiedNode& node : nodes_) {
    std::memcpy(entry, &node.entry, sizeof(node.entry));
    entry += sizeof(node.entry);
    std::memcpy(image.data() + node.entry.name_offset, node.name.data(), node.name.size());
    WriteBuffers(node, image.data());
  }
}

struct HeapBatch {
  explicit HeapBatch(uint64_t bytes)
      : memory(static_cast<std::byte*>(
                   std::aligned_alloc(batch::kImageAlignment, batch::AlignImage(bytes))),
               std::free) {
    Require(memory != nullptr, ErrorCode::kResourceExhausted,
            "there is not enough memory for a batch of {} bytes", bytes);
  }
  std::unique_ptr<std::byte, void (*)(void*)> memory;
  std::optional<BatchView> view;
};

}  // namespace

std::shared_ptr<const BatchView> CopyRuns(const std::vector<RowRun>& runs,
                                          const std::vector<size_t>& columns) {
  int64_t rows = 0;
  for (const RowRun& run : runs) rows += run.count;
  RunsImage image(rows);
  for (const size_t column : columns) {
    std::vector<ValueRun> values;
    for (const auto& [batch, begin, count] : runs) {
      values.push_back({&batch->columns()[column], begin, count});
    }
    image.AddColumn(std::move(values), runs.front().batch->columns()[column]);
  }
  const uint64_t bytes = image.Plan();
  auto batch = std::make_shared<HeapBatch>(bytes);
  const std::span<std::byte> memory(batch->memory.get(), bytes);
  image.Write(memory);
  batch->view.emplace(memory);
  // An aliasing pointer: it refers to the view and keeps the memory alive.
  return {batch, &*batch->view};
}

std::shared_ptr<const BatchView> CopyRows(const SelectedRows& rows,
                                          const std::optional<std::vector<std::string>>& names) {
  Require(rows.schema != nullptr, ErrorCode::kInvalidArgument,
          "cannot make a batch: the dataset has no rows, so its columns are unknown");
  std::vector<size_t> columns;
  if (names) {
    for (const std::string& name : *names)
      columns.push_back(ColumnNamed(rows.schema->columns(), name));
  } else {
    for (size_t i = 0; i < rows.schema->columns().size(); ++i) columns.push_back(i);
  }
  std::vector<RowRun> runs;
  // Merges consecutive rows into one run, so that unshuffled rows are copied as blocks.
  for (const auto& [batch, row] : rows.refs) {
    if (!runs.empty() && runs.back().batch == batch &&
        runs.back().begin + runs.back().count == row) {
      ++runs.back().count;
    } else {
      runs.push_back({batch, row, 1});
    }
  }
  // If no row is selected, adds an empty run, which provides the columns.
  if (runs.empty()) runs.push_back({rows.schema, 0, 0});
  return CopyRuns(runs, columns);
}

}  // namespace hearth::dataset
