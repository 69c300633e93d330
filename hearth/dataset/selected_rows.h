// Selected rows of a dataset, by reference into its partition files.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "hearth/dataset/partition_rows.h"

namespace hearth::dataset {

// Rows that a reader selected, as references. Immutable; reading is thread-safe.
struct SelectedRows {
  std::vector<PartitionRows::RowRef> refs;
  // A batch that shows the dataset's columns; null if the rank has no rows.
  const batch::BatchView* schema = nullptr;
  std::vector<int64_t> indices;
  std::vector<std::shared_ptr<const PartitionRows>> keep_alive;

  int64_t size() const { return static_cast<int64_t>(refs.size()); }
};

}  // namespace hearth::dataset
