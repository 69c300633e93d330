// Builds batches in memory, column by column: results on their way back, and test data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/batch/arrow_c_abi.h"
#include "hearth/batch/batch_view.h"

namespace hearth::batch {

// Columns must have equal lengths when Build() or Export() is called, else kInvalidArgument.
// `nulls`: empty, or one flag per row, true where the row's value is null. Not thread-safe.
class BatchBuilder {
 public:
  using Nulls = std::vector<bool>;

  BatchBuilder();
  ~BatchBuilder();

  BatchBuilder& AddInt32(std::string name, const std::vector<int32_t>& values,
                         const Nulls& nulls = {});
  BatchBuilder& AddInt64(std::string name, const std::vector<int64_t>& values,
                         const Nulls& nulls = {});
  BatchBuilder& AddFloat(std::string name, const std::vector<float>& values,
                         const Nulls& nulls = {});
  BatchBuilder& AddDouble(std::string name, const std::vector<double>& values,
                          const Nulls& nulls = {});
  BatchBuilder& AddString(std::string name, const std::vector<std::string>& v,
                          const Nulls& nulls = {});
  BatchBuilder& AddBinary(std::string name, const std::vector<std::string>& v,
                          const Nulls& nulls = {});
  // The same without a copy, as views: the values stay where they lie, as long as what is exported.
  BatchBuilder& AddBinaryViews(std::string name, const std::vector<std::string_view>& values,
                               const Nulls& nulls = {});
  BatchBuilder& AddFloatList(std::string name, const std::vector<std::vector<float>>& lists,
                             const Nulls& nulls = {});
  // The same from flat values: row i has values [offsets[i], offsets[i + 1]).
  BatchBuilder& AddFlatFloatLists(std::string name, std::vector<float> values,
                                  std::vector<int32_t> offsets);
  BatchBuilder& AddInt32List(std::string name, const std::vector<std::vector<int32_t>>& lists,
                             const Nulls& nulls = {});

  // A batch that owns its image; the builder may be used again afterwards.
  std::shared_ptr<const BatchView> Build();

  // The same rows by Arrow's C data interface. Valid while the builder lives and is not changed;
  // release does nothing.
  void Export(ArrowSchema* schema, ArrowArray* array);
  // The same once, for a receiver that releases them: `owner` lives as long, and with it this
  // builder.
  void ExportOnce(const std::shared_ptr<const void>& owner, ArrowSchema* schema, ArrowArray* array);

 private:
  struct Column;
  BatchBuilder& Add(std::unique_ptr<Column> column, const Nulls& nulls);
  template <typename Number>
  BatchBuilder& AddNumbers(std::string name, const char* format, const std::vector<Number>& values,
                           const Nulls& nulls);
  template <typename Number>
  BatchBuilder& AddLists(std::string name, const char* item_format,
                         const std::vector<std::vector<Number>>& lists, const Nulls& nulls);
  BatchBuilder& AddBytes(std::string name, const char* format,
                         const std::vector<std::string>& values, const Nulls& nulls);

  std::vector<std::unique_ptr<Column>> columns_;
  std::vector<ArrowSchema*> schema_pointers_;
  std::vector<ArrowArray*> array_pointers_;
};

}  // namespace hearth::batch
