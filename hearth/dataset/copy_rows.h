// Rows that were taken as a batch of their own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/batch/batch_view.h"
#include "hearth/dataset/taken_rows.h"

namespace hearth::dataset {

// Some consecutive rows of a batch.
struct RowRun {
  const batch::BatchView* batch;
  int64_t begin, count;
};

// A batch with these rows, in this order, on the heap; values that lie in other files are copied,
// too. All batches have the same columns (same_columns.h), of which those at `columns` are taken.
std::shared_ptr<const batch::BatchView> CopyRuns(const std::vector<RowRun>& runs,
                                                 const std::vector<size_t>& columns);

// The same of rows that were taken; `names`: which columns, nothing for all. Throws
// kInvalidArgument where there is no such column, or no row that has columns.
std::shared_ptr<const batch::BatchView> CopyRows(
    const TakenRows& rows, const std::optional<std::vector<std::string>>& names);

}  // namespace hearth::dataset
