#include "hearth/caffe/data/database/datum_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/data/database/lmdb_pages.h"
#include "hearth/caffe/proto/wire_reader.h"
#include "hearth/feed/batch_builder.h"

namespace hearth::caffe {
namespace {

// A batch ends with the record that fills it: many digits, or some pictures.
constexpr size_t kBatchBytes = size_t{4} << 20;
constexpr size_t kBatchRows = 4096;

// Keys are made of digits and file names; what is no text is told by its bytes.
std::string TextOf(std::string_view key) {
  const auto printable = [](unsigned char c) { return c >= 0x20 && c < 0x7f; };
  if (std::all_of(key.begin(), key.end(), printable)) return std::string(key);
  std::string text;
  for (const unsigned char c : key) text += fmt::format("{:02x}", c);
  return text;
}

class Columns {
 public:
  void Add(std::string_view key, std::string_view value) {
    ids_.push_back(TextOf(key));
    Datum datum;
    bool sound = true;
    try {
      ParseWire(value, "its Datum", &datum);
    } catch (const Error&) {
      sound = false;
      datum = {};
    }
    damaged_.push_back(!sound);
    labels_.push_back(datum.label());
    channels_.push_back(datum.channels());
    heights_.push_back(datum.height());
    widths_.push_back(datum.width());
    encoded_.push_back(datum.encoded() ? 1 : 0);
    without_data_.push_back(!datum.has_data());
    bytes_ += datum.data().size();
    data_.push_back(std::move(*datum.mutable_data()));
  }

  bool full() const { return bytes_ >= kBatchBytes || ids_.size() >= kBatchRows; }

  std::shared_ptr<const feed::BatchView> Build() const {
    feed::BatchBuilder builder;
    builder.AddString("id", ids_).AddInt32("label", labels_, damaged_);
    builder.AddInt32("channels", channels_, damaged_).AddInt32("height", heights_, damaged_);
    builder.AddInt32("width", widths_, damaged_).AddInt32("encoded", encoded_, damaged_);
    return builder.AddBinary("data", data_, without_data_).Build();
  }

 private:
  std::vector<std::string> ids_, data_;
  std::vector<int32_t> labels_, channels_, heights_, widths_, encoded_;
  std::vector<bool> damaged_, without_data_;
  size_t bytes_ = 0;
};

}  // namespace

uint64_t PartBegin(uint64_t records, uint64_t part, uint64_t parts) {
  // Without a product of both numbers, which may be too large.
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
            "the LMDB {} is damaged: it says that it has {} records, but ends after {} or before;"
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
          "{} has no record '{}' any more, with which a part of it begins; it must not be written "
          "while it is read",
          name_, TextOf(range_.first_key));
}

bool DatumRows::AtEnd() const {
  if (range_.count) return *range_.count == 0;
  return !records_->valid() || (range_.end_key && records_->key() >= *range_.end_key);
}

std::shared_ptr<const feed::BatchView> DatumRows::Next() {
  if (AtEnd()) return nullptr;
  Columns columns;
  for (; !AtEnd() && !columns.full(); records_->Next()) {
    Require(records_->valid(), ErrorCode::kDataLoss,
            "{} ends {} records too early; it must not be written while it is read", name_,
            range_.count.value_or(0));
    columns.Add(records_->key(), records_->value());
    if (range_.count) --*range_.count;
  }
  return columns.Build();
}

}  // namespace hearth::caffe
