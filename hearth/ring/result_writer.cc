#include "hearth/ring/result_writer.h"

#include <utility>

#include "hearth/base/error.h"
#include "hearth/batch/batch_builder.h"

namespace hearth::ring {
namespace {

// Size at which buffered rows are written: large enough that the overhead of an entry does not
// matter, and so far below 2 GiB that int32 offsets cannot overflow.
constexpr size_t kBatchBytes = 1 << 20;

}  // namespace

ResultWriter::ResultWriter(RingEnd ring, std::string id_column,
                           const std::vector<std::string>& outputs)
    : ring_(std::move(ring)), id_column_(std::move(id_column)) {
  for (const std::string& name : outputs) outputs_.push_back({name, {}, {0}});
}

bool ResultWriter::Add(std::string_view id, const std::vector<std::span<const float>>& values,
                       Deadline deadline) {
  Require(values.size() == outputs_.size(), ErrorCode::kInternal,
          "a result row has {} outputs, but {} are declared", values.size(), outputs_.size());
  ids_.emplace_back(id);
  gathered_bytes_ += id.size();
  for (size_t i = 0; i < values.size(); ++i) {
    Output& output = outputs_[i];
    output.values.insert(output.values.end(), values[i].begin(), values[i].end());
    output.offsets.push_back(static_cast<int32_t>(output.values.size()));
    gathered_bytes_ += values[i].size_bytes();
  }
  return gathered_bytes_ < kBatchBytes || WriteRows(deadline);
}

bool ResultWriter::WriteRows(Deadline deadline) {
  // If there are no rows, Flush() sends only the mark.
  if (ids_.empty()) return true;
  batch::BatchBuilder rows;
  rows.AddString(id_column_, ids_);
  for (Output& output : outputs_) {
    rows.AddFlatFloatLists(output.name, std::move(output.values), std::move(output.offsets));
    output.values = {};
    output.offsets = {0};
  }
  // The buffer is cleared before the write, so that its rows are not written again after an error.
  ids_.clear();
  gathered_bytes_ = 0;
  ArrowSchema schema;
  ArrowArray array;
  rows.Export(&schema, &array);
  return ring_.WriteArrow(schema, array, deadline);
}

bool ResultWriter::Flush(Deadline deadline) {
  return WriteRows(deadline) && ring_.WriteFlush(deadline);
}

bool ResultWriter::End(Deadline deadline) {
  return WriteRows(deadline) && ring_.WriteEnd(deadline);
}

}  // namespace hearth::ring
