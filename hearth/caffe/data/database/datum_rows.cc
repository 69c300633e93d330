#include "hearth/caffe/data/database/datum_rows.h"

#include <fmt/format.h>

#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/data/database/lmdb_pages.h"

namespace hearth::caffe {
namespace {

// Large enough for thousands of MNIST digits or for several images. Small enough that a batch with
// its other columns fits one ring entry.
constexpr size_t kBatchBytes = (size_t{4} << 20) - (size_t{256} << 10);
constexpr int64_t kBatchRows = 4096;

}  // namespace

uint64_t PartBegin(uint64_t records, uint64_t part, uint64_t parts) {
  // Avoids records * part, which may overflow.
  return records / parts * part + records % parts * part / parts;
}

LmdbParts DivideLmdb(const std::string& path, uint64_t parts) {
  Require(parts > 0, ErrorCode::kInvalidArgument, "the LMDB {} cannot be read in 0 parts", path);
  LmdbPages pages(path);
  LmdbParts divided{pages.records(), {}};
  for (uint64_t part = 0; part < parts; ++part) {
    divided.first_keys.emplace_back(pages.valid() ? pages.key() : "");
    const uint64_t begin = PartBegin(divided.records, part, parts);
    const uint64_t count = PartBegin(divided.records, part + 1, parts) - begin;
    Require(pages.valid() || count == 0, ErrorCode::kDataLoss,
            "the LMDB {} is damaged: its header says {} records, but it ends after at most {};"
            " create it again from its source",
            path, divided.records, begin);
    pages.Skip(count);
  }
  return divided;
}

LmdbCuts CutLmdb(const std::string& path, size_t wanted) {
  LmdbPages pages(path);
  std::vector<LmdbSubtree> trees = pages.Subtrees(wanted);
  LmdbCuts cuts{{}, pages.records(), pages.page_size()};
  if (wanted == 0 || trees.size() < wanted) return cuts;
  const size_t together = trees.size() / wanted;
  for (size_t i = 0; i < trees.size(); i += together) cuts.parts.push_back(std::move(trees[i]));
  return cuts;
}

DatumRows::DatumRows(const std::string& path, const std::string& first_key, uint64_t count)
    : DatumRows(path, DatumRange{first_key, std::nullopt, count}) {}

DatumRows::DatumRows(const std::string& path, DatumRange range)
    : DatumRows(std::make_unique<LmdbPages>(path), fmt::format("the LMDB {}", path),
                std::move(range)) {}

DatumRows::DatumRows(std::unique_ptr<DatabaseCursor> records, std::string name, DatumRange range)
    : records_(std::move(records)), name_(std::move(name)), range_(std::move(range)) {
  if (range_.count == 0 || range_.end_key == range_.first_key) {
    range_.count = 0;
    return;
  }
  records_->Seek(range_.first_key);
  if (range_.or_behind) return;
  Require(records_->valid() && records_->key() == range_.first_key, ErrorCode::kDataLoss,
          "{} no longer has the record '{}', at which its reading starts; do not write to a "
          "database while it is read",
          name_, TextOfKey(range_.first_key));
}

bool DatumRows::AtEnd() const {
  if (range_.count) return *range_.count == 0;
  return !records_->valid() || (range_.end_key && records_->key() >= *range_.end_key);
}

std::shared_ptr<const DatumBatch> DatumRows::Next() {
  if (AtEnd()) return nullptr;
  auto batch = std::make_shared<DatumBatch>(records_);
  for (; !AtEnd() && batch->rows() < kBatchRows; records_->Next()) {
    Require(records_->valid(), ErrorCode::kDataLoss,
            "{} ends {} records too early; do not write to a database while it is read", name_,
            range_.count.value_or(0));
    const std::string_view value = records_->value();
    if (batch->rows() > 0 && batch->data_bytes() + value.size() > kBatchBytes) break;
    batch->Add(records_->key(), value);
    if (range_.count) --*range_.count;
  }
  return batch;
}

}  // namespace hearth::caffe
