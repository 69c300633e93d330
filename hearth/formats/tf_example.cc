#include "hearth/formats/tf_example.h"

#include <utility>

#include "hearth/base/error.h"
#include "hearth/formats/wire.h"

namespace hearth::formats {
namespace {

// Limit of remembered feature names, because a damaged example may have any number of features.
constexpr size_t kMaxCachedFeatures = 64;
// After this many consecutive mismatches, only one of every kMaxMisses examples is learned.
constexpr int kMaxMisses = 16;
// Number of values whose offsets are remembered. Limited, because an empty string takes two bytes
// of an example, but its offset 24 bytes of memory.
constexpr size_t kMaxRuns = size_t{1} << 16;

const char* KindName(FeatureKind kind) {
  constexpr const char* kNames[] = {"no", "bytes", "float", "int64"};
  return kNames[static_cast<int>(kind)];
}

// Calls visit(name, Feature message) for the entries of the example's map. Accepts fields in any
// order and skips unknown ones, as protobuf requires of a parser.
template <typename Visit>
void ForEachEntry(std::string_view example, Visit visit) {
  for (WireReader top(example); !top.done();) {
    top.NextField();
    if (top.field != 1 || top.type != WireReader::kBytes) {
      top.Skip();
      continue;
    }
    for (WireReader features(top.Bytes()); !features.done();) {
      features.NextField();
      if (features.field != 1 || features.type != WireReader::kBytes) {
        features.Skip();
        continue;
      }
      std::string_view name;
      std::string_view feature;
      for (WireReader entry(features.Bytes()); !entry.done();) {
        entry.NextField();
        if (entry.type == WireReader::kBytes && entry.field == 1) {
          name = entry.Bytes();
        } else if (entry.type == WireReader::kBytes && entry.field == 2) {
          feature = entry.Bytes();
        } else {
          entry.Skip();
        }
      }
      visit(name, feature);
    }
  }
}

size_t Offset(std::string_view part, std::string_view whole) {
  return static_cast<size_t>(part.data() - whole.data());
}

struct Feature {
  FeatureKind kind = FeatureKind::kNone;
  std::string_view list;
};

// If a message has several lists, the last one counts, because they are alternatives of a oneof.
Feature ReadFeature(std::string_view message) {
  Feature feature;
  for (WireReader wire(message); !wire.done();) {
    wire.NextField();
    if (wire.type == WireReader::kBytes && wire.field >= 1 && wire.field <= 3) {
      feature = {static_cast<FeatureKind>(wire.field), wire.Bytes()};
    } else {
      wire.Skip();
    }
  }
  return feature;
}

// Calls put_packed(bytes) for packed numbers, put(wire) for single values.
// Writers may pack numbers or not, and a parser must accept both.
template <typename PutPacked, typename Put>
void ForEachValue(const Feature& feature, PutPacked put_packed, Put put) {
  for (WireReader wire(feature.list); !wire.done();) {
    wire.NextField();
    if (wire.field != 1) {
      wire.Skip();
    } else if (wire.type == WireReader::kBytes && feature.kind != FeatureKind::kBytes) {
      put_packed(wire.Bytes());
    } else {
      const uint32_t expected[] = {0, WireReader::kBytes, WireReader::kFixed32,
                                   WireReader::kVarint};
      Require(wire.type == expected[static_cast<int>(feature.kind)], ErrorCode::kDataLoss,
              "an example is malformed: a value of a {} list has the wire type {}",
              KindName(feature.kind), wire.type);
      put(wire);
    }
  }
}

// Appends packed numbers, or one value of a bytes list.
void AddRun(std::string_view run, FeatureColumn* out) {
  if (out->kind == FeatureKind::kFloat) {
    Require(run.size() % sizeof(float) == 0, ErrorCode::kDataLoss,
            "an example is malformed: its floats have {} bytes", run.size());
    if (run.empty()) return;  // out->floats may be unallocated
    // Copies by memcpy, because the bytes may be unaligned.
    const size_t before = out->floats.size();
    out->floats.resize(before + run.size() / sizeof(float));
    std::memcpy(out->floats.data() + before, run.data(), run.size());
  } else if (out->kind == FeatureKind::kInt64) {
    for (WireReader wire(run); !wire.done();) {
      out->ints.push_back(static_cast<int64_t>(wire.Varint()));
    }
  } else {
    out->bytes.append(run);
    out->byte_offsets.push_back(static_cast<int64_t>(out->bytes.size()));
  }
}

// Adds a feature's values to its column. Calls on_run(bytes) for each run added by AddRun();
// returns true if all values were in such runs.
template <typename OnRun>
bool AddFeatureValues(const Feature& feature, FeatureColumn* column, OnRun on_run) {
  if (feature.kind == FeatureKind::kNone) return true;  // a feature without a list
  Require(feature.kind == column->kind, ErrorCode::kInvalidArgument,
          "feature '{}' is a {} list in one example, but a {} list was expected", column->name,
          KindName(feature.kind), KindName(column->kind));
  bool all = true;
  ForEachValue(
      feature,
      [&](std::string_view packed) {
        AddRun(packed, column);
        on_run(packed);
      },
      [&](WireReader& wire) {
        if (feature.kind == FeatureKind::kBytes) {
          const std::string_view value = wire.Bytes();
          AddRun(value, column);
          on_run(value);
          return;
        }
        all = false;
        if (feature.kind == FeatureKind::kFloat) column->floats.push_back(wire.Float());
        if (feature.kind == FeatureKind::kInt64) {
          column->ints.push_back(static_cast<int64_t>(wire.Varint()));
        }
      });
  return all;
}

}  // namespace

int64_t FeatureColumn::values() const {
  if (kind == FeatureKind::kFloat) return static_cast<int64_t>(floats.size());
  if (kind == FeatureKind::kInt64) return static_cast<int64_t>(ints.size());
  return static_cast<int64_t>(byte_offsets.size()) - 1;
}

ExampleColumns::ExampleColumns(std::vector<FeatureColumn> columns) : columns_(std::move(columns)) {
  for (FeatureColumn& column : columns_) by_name_.emplace(column.name, &column);
}

FeatureColumn* ExampleColumns::Find(size_t index, std::string_view name) {
  if (index < previous_.size() && previous_[index].name == name) return previous_[index].column;
  const auto found = by_name_.find(name);
  FeatureColumn* const column = found == by_name_.end() ? nullptr : found->second;
  if (index == previous_.size() && index < kMaxCachedFeatures) {
    previous_.push_back({std::string(name), column});
  } else if (index < previous_.size()) {
    previous_[index] = {std::string(name), column};
  }
  return column;
}

void ExampleColumns::Add(std::string_view example) {
  ++rows_;
  Layout& layout = layouts_[example.size() % layouts_.size()];
  // Fast path: the bytes around the values equal those of an earlier example, so the values'
  // offsets are known and nothing is parsed.
  if (layout.shape.Matches(example)) {
    layout.misses = 0;
    AddByLayout(layout, example);
  } else {
    auto runs = AddByParsing(example);
    // While examples keep differing, learns only some of them, to save time.
    if (++layout.misses <= kMaxMisses || layout.misses % kMaxMisses == 0) {
      layout.shape.Forget();
      layout.present.clear();
      for (const FeatureColumn& column : columns_) layout.present.push_back(column.present.back());
      if (runs) layout.shape.Learn(example, std::move(*runs));
    }
  }
  for (FeatureColumn& column : columns_) column.row_offsets.push_back(column.values());
}

void ExampleColumns::AddByLayout(const Layout& layout, std::string_view example) {
  for (size_t i = 0; i < columns_.size(); ++i) columns_[i].present.push_back(layout.present[i]);
  for (const ExampleShape::Run& run : layout.shape.runs()) {
    if (run.column == ExampleShape::Run::kUnwanted) continue;
    AddRun(example.substr(run.offset, run.size), &columns_[static_cast<size_t>(run.column)]);
  }
}

std::optional<std::vector<ExampleShape::Run>> ExampleColumns::AddByParsing(
    std::string_view example) {
  std::vector<ExampleShape::Run> runs;
  bool all = true;
  const auto add_run = [&](std::string_view bytes, int column) {
    all = all && runs.size() < kMaxRuns;
    if (all) runs.push_back({Offset(bytes, example), bytes.size(), column});
  };
  for (FeatureColumn& column : columns_) column.present.push_back(0);
  size_t index = 0;
  ForEachEntry(example, [&](std::string_view name, std::string_view message) {
    FeatureColumn* const column = Find(index++, name);
    if (column == nullptr) {
      if (!message.empty()) add_run(message, ExampleShape::Run::kUnwanted);
      return;
    }
    Require(column->present.back() == 0, ErrorCode::kDataLoss,
            "an example is malformed: it has the feature '{}' twice", column->name);
    column->present.back() = 1;
    const auto index = static_cast<int>(column - columns_.data());
    const bool in_runs = AddFeatureValues(ReadFeature(message), column,
                                          [&](std::string_view run) { add_run(run, index); });
    all = all && in_runs;
  });
  if (!all) return std::nullopt;
  return runs;
}

void ForEachFeature(std::string_view example,
                    const std::function<void(std::string_view, FeatureKind, int64_t)>& visit) {
  ForEachEntry(example, [&](std::string_view name, std::string_view message) {
    const Feature feature = ReadFeature(message);
    FeatureColumn values{.name = std::string(name), .kind = feature.kind};
    AddFeatureValues(feature, &values, [](std::string_view) {});
    visit(name, feature.kind, values.values());
  });
}

}  // namespace hearth::formats
