// Ids of rows in results and in messages.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "hearth/batch/batch_view.h"

namespace hearth::trainer {

// Returns the row's `id` or, without one, its `SampleID`. If both are missing or null, returns
// `running_number` with eight digits.
inline std::string RowId(const batch::BatchView& batch, int64_t row, int64_t running_number) {
  for (const char* name : {"id", "SampleID"}) {
    const batch::ColumnView* column = batch.FindColumn(name);
    if (column && !column->IsNull(row)) return column->AsText(row);
  }
  return fmt::format("{:08d}", running_number);
}

}  // namespace hearth::trainer
