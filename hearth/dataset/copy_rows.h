// Copies selected rows into a new batch.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/batch/batch_view.h"
#include "hearth/dataset/selected_rows.h"

namespace hearth::dataset {

// Some consecutive rows of a batch.
struct RowRun {
  const batch::BatchView* batch;
  int64_t begin, count;
};

// A batch on the heap with these rows, in this order; values that are stored in other files are
// copied too. All batches have the same columns (same_columns.h); `columns` selects some by index.
std::shared_ptr<const batch::BatchView> CopyRuns(const std::vector<RowRun>& runs,
                                                 const std::vector<size_t>& columns);

// The same for selected rows; `names` selects columns, nullopt all of them. Throws kInvalidArgument
// for an unknown column, or if the dataset has no rows.
std::shared_ptr<const batch::BatchView> CopyRows(
    const SelectedRows& rows, const std::optional<std::vector<std::string>>& names);

}  // namespace hearth::dataset
