#include "hearth/caffe/solver/row_cursor.h"

namespace hearth::caffe {

std::optional<int64_t> RowCursor::Fetch() {
  const std::optional<int64_t> rows = net_.Fetch();
  ++fetches_;
  return rows;
}

void RowCursor::NextEpoch() {
  net_.NextEpoch();
  ++epoch_;
  fetches_ = 0;
}

Skipped RowCursor::SkipTo(int64_t epoch, int64_t fetches, int64_t most_fetches) {
  Skipped skipped;
  while (epoch_ < epoch) NextEpoch();
  for (fetches_ = 0; fetches_ < fetches; ++fetches_) {
    const std::optional<int64_t> rows = net_.Fetch();
    // A net that produces its own rows never runs out of them, so most_fetches limits the loop if
    // the position is damaged.
    const bool over = rows ? *rows == 0 : fetches_ >= most_fetches;
    if (over) break;
    skipped.rows += rows.value_or(0);
    ++skipped.minibatches;
  }
  // fetches_ is set even if the epoch had fewer minibatches, because the position says how far the
  // training was. The next fetch then ends the epoch.
  fetches_ = fetches;
  return skipped;
}

}  // namespace hearth::caffe
