#include "hearth/trainer/local/local_rows.h"

#include "hearth/trainer/rows/row_source.h"

namespace hearth::trainer {

std::optional<ring::RingEnd> LocalRows::Open(const caffe::NetParameter& net) {
  const auto source = RowSourceOf(net);
  if (!source) return std::nullopt;
  ring::RingEnds ends = ring::CreateRing();
  readers_.push_back(std::make_unique<ReaderProcess>(
      ReaderProcess::Options{source->uri, source->format, source->columns}, ends.writer));
  return std::move(ends.reader);
}

}  // namespace hearth::trainer
