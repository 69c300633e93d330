// Builds batches in memory, column by column: for results and for test data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/batch/arrow_c_abi.h"
#include "hearth/batch/batch_view.h"

namespace hearth::batch {

// A batch under construction. Build() and Export() throw kInvalidArgument unless all columns have
// the same length. `nulls` is empty or has one flag per row, true if the row's value is null. Not
// thread-safe.
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
  // Like AddBinary(), but adds views instead of copies: the values must outlive the exported batch.
  BatchBuilder& AddBinaryViews(std::string name, const std::vector<std::string_view>& values,
                               const Nulls& nulls = {});
  BatchBuilder& AddFloatList(std::string name, const std::vector<std::vector<float>>& lists,
                             const Nulls& nulls = {});
  // Like AddFloatList(), but takes flat values: row i has values [offsets[i], offsets[i + 1]).
  BatchBuilder& AddFlatFloatLists(std::string name, std::vector<float> values,
                                  std::vector<int32_t> offsets);
  BatchBuilder& AddInt32List(std::string name, const std::vector<std::vector<int32_t>>& lists,
                             const Nulls& nulls = {});

  // A batch that owns its image; the builder may be used again afterwards.
  std::shared_ptr<const BatchView> Build();

  // Exports the rows through Arrow's C data interface. The structs are valid until the builder is
  // changed or destroyed; releasing them has no effect.
  void Export(ArrowSchema* schema, ArrowArray* array);
  // Like Export(), but the structs share ownership of `owner`, which must own this builder, until
  // the receiver releases them. May be called once.
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
