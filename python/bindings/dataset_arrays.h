// Python's handle to selected rows of a dataset, and conversion of their columns to arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batch.h"
#include "hearth/dataset/dataset_rows.h"
#include "hearth/dataset/selected_rows.h"

namespace hearth::bindings {

// Selected rows of a dataset. Call with the GIL.
class PythonRows {
 public:
  PythonRows(std::shared_ptr<const dataset::SelectedRows> rows,
             std::shared_ptr<dataset::DatasetRows> dataset, uint64_t seed, int64_t epoch)
      : rows_(std::move(rows)), dataset_(std::move(dataset)), seed_(seed), epoch_(epoch) {}

  int64_t count() const { return rows_->size(); }
  // Returns a column as an array or a list, or None for types that only pyarrow supports.
  nanobind::object Gather(const std::string& name, nanobind::handle out_dtype, bool ragged) const;
  // Returns the rows as a new batch, with `columns` or all columns.
  PythonBatch Batch(const std::optional<std::vector<std::string>>& columns) const;
  nanobind::object Indices() const;
  nanobind::object Ids() const;

 private:
  std::shared_ptr<const dataset::SelectedRows> rows_;
  std::shared_ptr<dataset::DatasetRows> dataset_;
  uint64_t seed_;
  int64_t epoch_;
};

void DefineSelectedRows(nanobind::module_& m);
void DefinePartitionFiles(nanobind::module_& m);
void DefineEpochReader(nanobind::module_& m);

}  // namespace hearth::bindings
