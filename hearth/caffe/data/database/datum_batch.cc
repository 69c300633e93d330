#include "hearth/caffe/data/database/datum_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/caffe/proto/wire_reader.h"

namespace hearth::caffe {
namespace {

// Tags of Datum's fields in the order in which programs usually write them: three numbers, then the
// data.
constexpr char kNumberTags[] = {1 << 3, 2 << 3, 3 << 3};
constexpr char kDataTag = 4 << 3 | 2;
constexpr size_t kLongestVarint = 10;

// Reads the varint at `at` and moves `at` past it. Empty if the varint is incomplete.
std::optional<uint64_t> Varint(std::string_view bytes, size_t* at) {
  uint64_t value = 0;
  for (size_t i = 0; i < kLongestVarint && *at < bytes.size(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[(*at)++]);
    value |= uint64_t{byte & 0x7fu} << 7 * i;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

// A serialized Datum, split into its pixels, which need no parsing, and the bytes around them.
struct Split {
  std::string_view before;
  std::optional<std::string_view> data;  // empty if the fields are not in the usual order
  std::string_view behind;
};

Split SplitAtData(std::string_view record) {
  for (size_t at = 0; at < record.size();) {
    const size_t field = at;
    const char tag = record[at++];
    const auto value = Varint(record, &at);
    const bool is_number =
        std::find(std::begin(kNumberTags), std::end(kNumberTags), tag) != std::end(kNumberTags);
    if (value && is_number) continue;
    if (!value || tag != kDataTag || *value > record.size() - at) break;
    return {record.substr(0, field), record.substr(at, *value), record.substr(at + *value)};
  }
  return {record, std::nullopt, {}};
}

// Returns whether `record` is a Datum. Sets `data` to the pixels inside the record, or leaves it
// empty if they are in `datum`.
bool ParseDatum(std::string_view record, Datum* datum, std::string_view* data) {
  static const std::string kWhere = "its Datum";
  const Split split = SplitAtData(record);
  try {
    ParseWire(split.before, kWhere, datum);
    ParseWire(split.behind, kWhere, datum);
  } catch (const Error&) {
    *datum = {};
    return false;
  }
  // If a second data field follows, it has replaced the first.
  if (split.data && !datum->has_data()) {
    *data = *split.data;
    datum->set_data("");
  }
  return true;
}

}  // namespace

std::string TextOfKey(std::string_view key) {
  const auto printable = [](unsigned char c) { return c >= 0x20 && c < 0x7f; };
  if (std::all_of(key.begin(), key.end(), printable)) return std::string(key);
  std::string text;
  for (const unsigned char c : key) text += fmt::format("{:02x}", c);
  return text;
}

std::string_view DatumBatch::Referenced(std::string_view bytes) {
  return records_->keeps_values() ? bytes : copies_.emplace_back(bytes);
}

void DatumBatch::Add(std::string_view key, std::string_view value) {
  ids_.push_back(TextOfKey(key));
  Datum datum;
  std::string_view data;
  const bool sound = ParseDatum(value, &datum, &data);
  if (!data.empty()) {
    data = Referenced(data);
  } else if (!datum.data().empty()) {
    data = copies_.emplace_back(std::move(*datum.mutable_data()));
  }
  damaged_.push_back(!sound);
  labels_.push_back(datum.label());
  channels_.push_back(datum.channels());
  heights_.push_back(datum.height());
  widths_.push_back(datum.width());
  encoded_.push_back(datum.encoded() ? 1 : 0);
  without_data_.push_back(!datum.has_data());
  data_.push_back(data);
  data_bytes_ += data.size();
}

void DatumBatch::Export(const std::shared_ptr<const DatumBatch>& batch, ArrowSchema* schema,
                        ArrowArray* array) {
  struct Exported {
    std::shared_ptr<const DatumBatch> batch;
    batch::BatchBuilder builder;
  };
  const auto owner = std::make_shared<Exported>();
  owner->batch = batch;
  const DatumBatch& from = *batch;
  owner->builder.AddString("id", from.ids_)
      .AddInt32("label", from.labels_, from.damaged_)
      .AddInt32("channels", from.channels_, from.damaged_)
      .AddInt32("height", from.heights_, from.damaged_)
      .AddInt32("width", from.widths_, from.damaged_)
      .AddInt32("encoded", from.encoded_, from.damaged_)
      .AddBinaryViews("data", from.data_, from.without_data_)
      .ExportOnce(owner, schema, array);
}

}  // namespace hearth::caffe
