#include "hearth/batch/batch_builder.h"

#include <cstdint>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/batch/arrow_image.h"
#include "hearth/batch/byte_views.h"

namespace hearth::batch {
// Buffers of one column, in the layout of the Arrow structs.
struct BatchBuilder::Column {
  std::string name;
  std::string format;
  int64_t length = 0;
  std::vector<uint8_t> validity;
  std::vector<int32_t> offsets;
  std::vector<std::byte> data;
  std::unique_ptr<ByteViews> views;  // if set, the column has no data buffer
  std::unique_ptr<Column> child;

  std::vector<const void*> buffers;
  ArrowSchema schema;
  ArrowArray array;
  ArrowSchema* child_schema;
  ArrowArray* child_array;

  Column(std::string column_name, std::string column_format, size_t column_length)
      : name(std::move(column_name)),
        format(std::move(column_format)),
        length(static_cast<int64_t>(column_length)) {}

  void Append(const void* bytes, size_t count) {
    const auto* from = static_cast<const std::byte*>(bytes);
    data.insert(data.end(), from, from + count);
  }

  void Export() {
    // Arrow's order: validity, then offsets, then data. A list has no data buffer; its child has
    // one.
    buffers.assign(1, validity.empty() ? nullptr : validity.data());
    if (!offsets.empty()) buffers.push_back(offsets.data());
    if (views != nullptr) {
      views->AddBuffers(&buffers);
    } else if (child == nullptr) {
      buffers.push_back(data.data());
    }
    schema = {};
    schema.format = format.c_str();
    schema.name = name.c_str();
    // Releasing frees nothing, because the builder owns all buffers. ExportOnce() replaces these
    // functions.
    schema.release = [](ArrowSchema* s) { s->release = nullptr; };
    array = {};
    array.length = length;
    array.null_count = validity.empty() ? 0 : -1;
    array.n_buffers = static_cast<int64_t>(buffers.size());
    array.buffers = buffers.data();
    array.release = [](ArrowArray* a) { a->release = nullptr; };
    if (child == nullptr) return;
    child->Export();
    child_schema = &child->schema;
    child_array = &child->array;
    schema.n_children = array.n_children = 1;
    schema.children = &child_schema;
    array.children = &child_array;
  }
};

namespace {

// Appends the values of each list to `target`, and the list's end to `offsets`. A list may be any
// container of contiguous values (std::string, std::vector). Offsets start at 0 and count bytes of
// strings or items of lists.
template <typename Column, typename Values>
void AppendLists(const std::vector<Values>& lists, std::vector<int32_t>* offsets, Column* target) {
  offsets->assign(1, 0);
  for (const Values& list : lists) {
    target->Append(list.data(), list.size() * sizeof(*list.data()));
    offsets->push_back(offsets->back() + static_cast<int32_t>(list.size()));
  }
}

}  // namespace

BatchBuilder::BatchBuilder() = default;
BatchBuilder::~BatchBuilder() = default;

BatchBuilder& BatchBuilder::Add(std::unique_ptr<Column> column, const Nulls& nulls) {
  if (!nulls.empty()) {
    Require(static_cast<int64_t>(nulls.size()) == column->length, ErrorCode::kInvalidArgument,
            "column '{}' has {} values and {} null flags", column->name, column->length,
            nulls.size());
    // Arrow's bits are set for values, not for nulls.
    column->validity.resize((nulls.size() + 7) / 8);
    for (size_t i = 0; i < nulls.size(); ++i) {
      if (!nulls[i]) column->validity[i / 8] |= static_cast<uint8_t>(1 << i % 8);
    }
  }
  columns_.push_back(std::move(column));
  return *this;
}

template <typename Number>
BatchBuilder& BatchBuilder::AddNumbers(std::string name, const char* format,
                                       const std::vector<Number>& values, const Nulls& nulls) {
  auto column = std::make_unique<Column>(std::move(name), format, values.size());
  column->Append(values.data(), values.size() * sizeof(Number));
  return Add(std::move(column), nulls);
}

template <typename Number>
BatchBuilder& BatchBuilder::AddLists(std::string name, const char* item_format,
                                     const std::vector<std::vector<Number>>& lists,
                                     const Nulls& nulls) {
  auto column = std::make_unique<Column>(std::move(name), "+l", lists.size());
  column->child = std::make_unique<Column>("item", item_format, 0);
  AppendLists(lists, &column->offsets, column->child.get());
  column->child->length = column->offsets.back();
  return Add(std::move(column), nulls);
}

BatchBuilder& BatchBuilder::AddBytes(std::string name, const char* format,
                                     const std::vector<std::string>& values, const Nulls& nulls) {
  auto column = std::make_unique<Column>(std::move(name), format, values.size());
  AppendLists(values, &column->offsets, column.get());
  return Add(std::move(column), nulls);
}

BatchBuilder& BatchBuilder::AddInt32(std::string name, const std::vector<int32_t>& values,
                                     const Nulls& nulls) {
  return AddNumbers(std::move(name), "i", values, nulls);
}

BatchBuilder& BatchBuilder::AddInt64(std::string name, const std::vector<int64_t>& values,
                                     const Nulls& nulls) {
  return AddNumbers(std::move(name), "l", values, nulls);
}

BatchBuilder& BatchBuilder::AddFloat(std::string name, const std::vector<float>& values,
                                     const Nulls& nulls) {
  return AddNumbers(std::move(name), "f", values, nulls);
}

BatchBuilder& BatchBuilder::AddDouble(std::string name, const std::vector<double>& values,
                                      const Nulls& nulls) {
  return AddNumbers(std::move(name), "g", values, nulls);
}

BatchBuilder& BatchBuilder::AddString(std::string name, const std::vector<std::string>& values,
                                      const Nulls& nulls) {
  return AddBytes(std::move(name), "u", values, nulls);
}

BatchBuilder& BatchBuilder::AddBinary(std::string name, const std::vector<std::string>& values,
                                      const Nulls& nulls) {
  return AddBytes(std::move(name), "z", values, nulls);
}

BatchBuilder& BatchBuilder::AddBinaryViews(std::string name,
                                           const std::vector<std::string_view>& values,
                                           const Nulls& nulls) {
  auto column = std::make_unique<Column>(std::move(name), "vz", values.size());
  column->views = std::make_unique<ByteViews>();
  for (const std::string_view value : values) column->views->Append(value, column->name);
  return Add(std::move(column), nulls);
}

BatchBuilder& BatchBuilder::AddFloatList(std::string name,
                                         const std::vector<std::vector<float>>& lists,
                                         const Nulls& nulls) {
  return AddLists(std::move(name), "f", lists, nulls);
}

BatchBuilder& BatchBuilder::AddInt32List(std::string name,
                                         const std::vector<std::vector<int32_t>>& lists,
                                         const Nulls& nulls) {
  return AddLists(std::move(name), "i", lists, nulls);
}

BatchBuilder& BatchBuilder::AddFlatFloatLists(std::string name, std::vector<float> values,
                                              std::vector<int32_t> offsets) {
  auto column = std::make_unique<Column>(std::move(name), "+l", offsets.size() - 1);
  column->child = std::make_unique<Column>("item", "f", values.size());
  column->child->Append(values.data(), values.size() * sizeof(float));
  column->offsets = std::move(offsets);
  return Add(std::move(column), {});
}

// Neither the columns nor the vectors of pointers may change while the export is in use, because
// the structs point into them.
void BatchBuilder::Export(ArrowSchema* schema, ArrowArray* array) {
  static const void* const kNoBuffer = nullptr;
  schema_pointers_.clear();
  array_pointers_.clear();
  for (const auto& column : columns_) {
    Require(column->length == columns_[0]->length, ErrorCode::kInvalidArgument,
            "column '{}' has {} values, but column '{}' has {}", column->name, column->length,
            columns_[0]->name, columns_[0]->length);
    column->Export();
    schema_pointers_.push_back(&column->schema);
    array_pointers_.push_back(&column->array);
  }
  *schema = {};
  schema->format = "+s";
  schema->name = "";
  schema->n_children = static_cast<int64_t>(columns_.size());
  schema->children = schema_pointers_.data();
  schema->release = [](ArrowSchema* s) { s->release = nullptr; };
  *array = {};
  array->length = columns_.empty() ? 0 : columns_[0]->length;
  array->n_buffers = 1;
  array->buffers = const_cast<const void**>(&kNoBuffer);
  array->n_children = schema->n_children;
  array->children = array_pointers_.data();
  array->release = [](ArrowArray* a) { a->release = nullptr; };
}

namespace {

// Makes each struct hold a reference to the owner, because children can be moved out and released
// separately.
template <typename Struct>
void SetOwner(const std::shared_ptr<const void>& owner, Struct* given) {
  for (int64_t i = 0; i < given->n_children; ++i) SetOwner(owner, given->children[i]);
  given->private_data = new std::shared_ptr<const void>(owner);
  given->release = [](Struct* released) {
    for (int64_t i = 0; i < released->n_children; ++i) {
      Struct* child = released->children[i];
      if (child->release != nullptr) child->release(child);
    }
    const auto* shared_owner = static_cast<std::shared_ptr<const void>*>(released->private_data);
    released->release = nullptr;
    delete shared_owner;  // last, because it may own `released`
  };
}

}  // namespace

void BatchBuilder::ExportOnce(const std::shared_ptr<const void>& owner, ArrowSchema* schema,
                              ArrowArray* array) {
  Export(schema, array);
  SetOwner(owner, schema);
  SetOwner(owner, array);
}

std::shared_ptr<const BatchView> BatchBuilder::Build() {
  ArrowSchema schema;
  ArrowArray array;
  Export(&schema, &array);
  // Builds an image first, so that a built batch is validated and laid out like a received one.
  const ArrowImage image(schema, array);
  // uint64_t gives the temporary block the alignment of an image.
  std::vector<uint64_t> bytes(image.ImageBytes(0, image.rows()) / sizeof(uint64_t));
  const std::span<std::byte> span = std::as_writable_bytes(std::span(bytes));
  image.Write(0, image.rows(), span);
  return CopyBatch(span);
}

}  // namespace hearth::batch
