// Test helpers for data layers: rows.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "hearth/batch/batch_builder.h"
#include "hearth/dataset/spool/memory_source.h"

namespace hearth::caffe {

// A source that yields the rows of these batches, in order, in every epoch.
inline std::shared_ptr<dataset::MinibatchSource> SourceOf(
    std::vector<std::shared_ptr<const batch::BatchView>> batches) {
  return std::make_shared<dataset::MemorySource>(std::move(batches));
}

// A batch of `rows` rows whose column x counts up from `first`.
inline std::shared_ptr<const batch::BatchView> CountingBatch(int rows, int first = 0) {
  std::vector<int32_t> x;
  for (int i = 0; i < rows; ++i) x.push_back(first + i);
  return batch::BatchBuilder().AddInt32("x", x).Build();
}

}  // namespace hearth::caffe
