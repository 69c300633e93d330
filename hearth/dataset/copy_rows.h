// Copies selected rows into a new batch.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/batch/batch_view.h"
#include "hearth/dataset/selected_rows.h"

namespace hearth::dataset {

// Consecutive rows of a batch.
struct RowRun {
  const batch::BatchView* batch;
  int64_t begin, count;
};

// Copies the runs, in this order, into a batch on the heap, including values that are stored in
// other files. All batches must have the same columns (same_columns.h); `columns` selects columns
// by index.
std::shared_ptr<const batch::BatchView> CopyRuns(const std::vector<RowRun>& runs,
                                                 const std::vector<size_t>& columns);

// Copies the selected rows in the same way; `names` selects columns, nullopt means all. Throws
// kInvalidArgument for an unknown column, or if the dataset has no rows.
std::shared_ptr<const batch::BatchView> CopyRows(
    const SelectedRows& rows, const std::optional<std::vector<std::string>>& names);

}  // namespace hearth::dataset
