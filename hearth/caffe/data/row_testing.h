// Rows for tests of the data layers.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "hearth/feed/batch_builder.h"
#include "hearth/feed/memory_source.h"

namespace hearth::caffe {

// The rows of one batch, in order, in every epoch.
inline std::shared_ptr<feed::MinibatchSource> SourceOf(
    std::vector<std::shared_ptr<const feed::BatchView>> batches) {
  return std::make_shared<feed::MemorySource>(std::move(batches));
}

// `rows` rows with a column x of 0, 1, 2, ...
inline std::shared_ptr<const feed::BatchView> CountingBatch(int rows, int first = 0) {
  std::vector<int32_t> x;
  for (int i = 0; i < rows; ++i) x.push_back(first + i);
  return feed::BatchBuilder().AddInt32("x", x).Build();
}

}  // namespace hearth::caffe
