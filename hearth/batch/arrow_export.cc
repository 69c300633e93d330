#include "hearth/batch/arrow_export.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/batch/byte_views.h"

namespace hearth::batch {
namespace {

constexpr int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE
// Stands in for absent buffers, because some receivers reject null even for zero bytes.
alignas(64) const uint8_t kEmptyBuffer[64] = {};

// Object to which private_data points. If a receiver has moved a child out, that child's release is
// null.
template <typename Struct>
struct Holder {
  std::string format;
  std::string name;
  std::shared_ptr<const BatchView> batch;
  ByteViews views;  // of values that are stored in a file
  std::vector<const void*> buffers;
  std::vector<Struct> children;
  std::vector<Struct*> child_pointers;

  static void Release(Struct* released) {
    auto* holder = static_cast<Holder*>(released->private_data);
    for (Struct& child : holder->children) {
      // A receiver may move a child out: by Arrow's contract it then sets the child's `release` to
      // null and later releases its own copy, which has a separate holder and does not need this
      // one.
      if (child.release != nullptr) child.release(&child);
    }
    delete holder;
    // Set last, as Arrow's contract requires: null marks the struct as released.
    released->release = nullptr;
  }

  // Makes `target` the owner of this holder.
  void Attach(Struct* target) {
    // The vector of children no longer grows, so the addresses are final.
    for (Struct& child : children) child_pointers.push_back(&child);
    target->n_children = static_cast<int64_t>(children.size());
    target->children = child_pointers.data();
    target->release = Release;
    target->private_data = this;
  }
};

void ExportSchema(const std::string& format, std::string_view name,
                  const std::vector<ColumnView>& children, ArrowSchema* schema) {
  auto holder = std::make_unique<Holder<ArrowSchema>>();
  holder->format = format;
  holder->name = name;
  for (const ColumnView& child : children) {
    holder->children.emplace_back();
    ExportSchema(ArrowFormat({child.type(), child.list_size()}), child.name(), child.children(),
                 &holder->children.back());
  }
  *schema = {};
  schema->format = holder->format.c_str();
  schema->name = holder->name.c_str();
  schema->flags = kNullable;
  holder.release()->Attach(schema);
}

// Returns the column's Arrow buffers. Values in a file are appended to `views`, which must outlive
// the buffers.
std::vector<const void*> BuffersOf(const ColumnView& column, ByteViews* views) {
  const ColumnBuffers& from = column.buffers();
  std::vector<const void*> buffers = {from.validity};
  if (column.type() == ColumnType::kFileBinary) {
    // Arrow has no type for values in a file, so such values are exported as binary views into the
    // file's mapping.
    for (int64_t row = 0; row < column.length(); ++row) {
      views->Append(column.IsNull(row) ? std::string_view() : column.Bytes(row), column.name());
    }
    views->AddBuffers(&buffers);
    return buffers;
  }
  if (from.offsets != nullptr) buffers.push_back(from.offsets);
  if (column.children().empty() && column.type() != ColumnType::kStruct) {
    buffers.push_back(from.data != nullptr ? from.data : kEmptyBuffer);
  }
  return buffers;
}

void ExportArray(std::unique_ptr<Holder<ArrowArray>> holder, int64_t length,
                 const std::vector<ColumnView>& children, ArrowArray* array) {
  for (const ColumnView& child : children) {
    auto held = std::make_unique<Holder<ArrowArray>>();
    held->batch = holder->batch;
    held->buffers = BuffersOf(child, &held->views);
    holder->children.emplace_back();
    ExportArray(std::move(held), child.length(), child.children(), &holder->children.back());
  }
  *array = {};
  array->length = length;
  // -1: unknown, so that the receiver counts the nulls if it needs their number.
  array->null_count = holder->buffers[0] == nullptr ? 0 : -1;
  array->n_buffers = static_cast<int64_t>(holder->buffers.size());
  array->buffers = holder->buffers.data();
  holder.release()->Attach(array);
}

}  // namespace

void ExportBatch(const std::shared_ptr<const BatchView>& batch, ArrowSchema* schema,
                 ArrowArray* array) {
  ExportSchema("+s", "", batch->columns(), schema);
  auto holder = std::make_unique<Holder<ArrowArray>>();
  holder->batch = batch;
  // A struct's only buffer is its validity, which is absent because no row of a record batch is
  // null.
  holder->buffers = {nullptr};
  ExportArray(std::move(holder), batch->rows(), batch->columns(), array);
}

}  // namespace hearth::batch
