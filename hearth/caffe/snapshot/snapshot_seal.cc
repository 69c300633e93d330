#include "hearth/caffe/snapshot/snapshot_seal.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/sha256.h"
#include "hearth/storage/file.h"
#include "hearth/storage/uri.h"

namespace hearth::caffe {
namespace {

using nlohmann::json;

// Larger than any realistic iter_size.
constexpr int64_t kMaxFetchesOfIteration = 1 << 16;
constexpr char kSealExtension[] = ".hearth.json";
constexpr char kStateExtension[] = ".solverstate";

std::string SealOf(const std::string& state) {
  return state.substr(0, state.rfind(kStateExtension)) + kSealExtension;
}

// Returns true if a file that could not be read may nevertheless be intact.
bool IsUnreachable(const Error& error) {
  return error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kDeadlineExceeded;
}

// Returns the SHA-256 and the size of a file.
std::pair<std::string, uint64_t> HashFile(const std::string& uri) {
  try {
    const auto file = storage::For(uri).Open(uri);
    Sha256 hash;
    std::string block(1 << 20, '\0');
    uint64_t size = 0;
    while (const size_t count = file->ReadAt(size, block.data(), block.size())) {
      hash.Append({block.data(), count});
      size += count;
    }
    return {hash.Hex(), size};
  } catch (const Error& error) {
    if (IsUnreachable(error)) throw;
    throw Error(ErrorCode::kDataLoss, uri + " does not exist or cannot be read", error);
  }
}

json Describe(const std::string& uri) {
  const auto [hash, size] = HashFile(uri);
  return {{"file", storage::NameOf(uri)}, {"bytes", size}, {"sha256", hash}};
}

void CheckFile(const std::string& uri, const json& sealed) {
  const auto [hash, size] = HashFile(uri);
  const auto expected = sealed.at("bytes").get<uint64_t>();
  Require(size == expected, ErrorCode::kDataLoss, "{} has {} bytes instead of {}", uri, size,
          expected);
  Require(hash == sealed.at("sha256").get<std::string>(), ErrorCode::kDataLoss,
          "{} is damaged: its SHA-256 differs from that in its seal", uri);
}

// Hashes are written as text, because not every JSON reader supports 64-bit integers.
json ToJson(const std::vector<SealedRows>& rows) {
  json list = json::array();
  for (const SealedRows& each : rows) {
    list.push_back({{"count", each.count}, {"hash", fmt::format("{:016x}", each.hash)}});
  }
  return list;
}

json ToJson(const TrainingPosition& position) {
  json fields = {{"run", position.run},
                 {"iteration", position.iteration},
                 {"current_step", position.current_step},
                 {"seed", position.seed},
                 {"ranks", position.ranks},
                 {"epoch", position.epoch},
                 {"fetches", position.fetches},
                 {"losses", position.losses},
                 {"rows", ToJson(position.rows)},
                 {"row_hash", position.row_hash},
                 {"batch_size", position.batch_size},
                 {"notes", position.notes}};
  if (!position.datasets.empty()) fields["datasets"] = position.datasets;
  if (const auto& counts = position.counts) {
    fields["counts"] = {{"rows", counts->rows},
                        {"bad", counts->bad},
                        {"whole_epoch", counts->whole_epoch},
                        {"all_bad", counts->all_bad}};
  }
  return fields;
}

// Reads the integer `name`. Training only writes values from `least` to `most`, so any other value
// is rejected.
int64_t NumberIn(const json& fields, const std::string& name, int64_t least, int64_t most) {
  const json& value = fields.at(name);
  const bool too_large = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
  const bool fits = value.is_number_integer() && !too_large && value.get<int64_t>() >= least &&
                    value.get<int64_t>() <= most;
  Require(fits, ErrorCode::kDataLoss,
          "field \"{}\" of the seal is {}, not an integer from {} to {}", name,
          value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 100), least, most);
  return value.get<int64_t>();
}

// Seals of earlier versions do not have the field "rows".
std::vector<SealedRows> RowsFromJson(const json& fields) {
  std::vector<SealedRows> rows;
  for (const json& each : fields.value("rows", json::array())) {
    const auto hash = each.at("hash").get<std::string>();
    SealedRows& row = rows.emplace_back();
    row.count = NumberIn(each, "count", 0, INT64_MAX);
    const auto [end, error] = std::from_chars(hash.data(), hash.data() + hash.size(), row.hash, 16);
    Require(error == std::errc() && end == hash.data() + hash.size(), ErrorCode::kDataLoss,
            "field \"rows\" of the seal has a malformed hash");
  }
  return rows;
}

int IntIn(const json& fields, const std::string& name, int least) {
  return static_cast<int>(NumberIn(fields, name, least, std::numeric_limits<int>::max()));
}

RowCounts CountsFrom(const json& fields) {
  RowCounts counts;
  counts.rows = NumberIn(fields, "rows", 0, INT64_MAX);
  counts.bad = NumberIn(fields, "bad", 0, counts.rows);
  counts.whole_epoch = NumberIn(fields, "whole_epoch", 0, INT64_MAX);
  counts.all_bad = NumberIn(fields, "all_bad", 0, INT64_MAX);
  return counts;
}

// `least_position` is the least valid epoch and number of fetches: in memory, -1 means that they
// are unknown, but a seal never contains -1.
TrainingPosition FromJson(const json& fields, int64_t least_position) {
  TrainingPosition position;
  fields.at("run").get_to(position.run);
  fields.at("seed").get_to(position.seed);
  position.iteration = IntIn(fields, "iteration", 0);
  position.current_step = IntIn(fields, "current_step", 0);
  position.ranks = IntIn(fields, "ranks", 1);
  // Limits: an epoch takes at least one iteration, and an iteration at most kMaxFetchesOfIteration
  // minibatches.
  position.epoch = NumberIn(fields, "epoch", least_position, position.iteration);
  position.fetches =
      NumberIn(fields, "fetches", least_position, position.iteration * kMaxFetchesOfIteration);
  if (fields.contains("counts")) position.counts = CountsFrom(fields.at("counts"));
  for (const json& loss : fields.at("losses")) {  // a non-finite loss is null in JSON
    position.losses.push_back(loss.is_null() ? std::numeric_limits<float>::quiet_NaN()
                                             : loss.get<float>());
  }
  position.rows = RowsFromJson(fields);
  // Seals with hash version 1 do not contain the version.
  position.row_hash = fields.contains("row_hash") ? IntIn(fields, "row_hash", 0) : 1;
  position.batch_size =
      fields.contains("batch_size") ? NumberIn(fields, "batch_size", 0, INT64_MAX) : 0;
  position.notes = fields.value("notes", "");
  position.datasets = fields.value("datasets", "");
  position.seal = fields.value("seal", "");
  return position;
}

// Returns a discarded value if the text is not JSON. A seal has a depth of 4. The depth is limited,
// because copying and writing JSON recurse once per level, and a damaged file may have any depth.
json ParseShallow(const std::string& text) {
  static constexpr int kDeepest = 16;
  const auto check_depth = [](int depth, json::parse_event_t, const json&) {
    Require(depth <= kDeepest, ErrorCode::kDataLoss, "a seal is nested deeper than {}", kDeepest);
    return true;
  };
  return json::parse(text, check_depth, /*allow_exceptions=*/false);
}

// Reads and checks a seal: its "sha256" is the checksum of its other fields.
json ReadSeal(const std::string& uri) {
  json seal = ParseShallow(storage::ReadFile(uri));
  const bool has_hash = seal.is_object() && seal.contains("sha256") && seal["sha256"].is_string();
  Require(has_hash, ErrorCode::kDataLoss, "{} is truncated or damaged", uri);
  const std::string hash = seal["sha256"];
  seal.erase("sha256");
  // The JSON library sorts the keys of an object, so `text` is the text that was hashed, whatever
  // white space the file contains.
  const std::string text = seal.dump(-1, ' ', false, json::error_handler_t::replace);
  Require(hash == Sha256Hex(text), ErrorCode::kDataLoss, "{} is damaged", uri);
  return seal;
}

TrainingPosition PositionIn(json seal, const std::string& uri) {
  seal.erase("seal");
  try {
    TrainingPosition position = FromJson(seal, 0);
    position.seal = uri;
    return position;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{} cannot be used", uri), error);
  }
}

std::string Beside(const std::string& state, const std::string& file) {
  return storage::Join(storage::FolderOf(state), file);
}

// The run that wrote a snapshot. Empty if the snapshot's seal is missing or damaged; then no other
// snapshot can be used instead, because the run is unknown.
std::optional<std::string> RunOf(const std::string& state) {
  try {
    return ReadSeal(SealOf(state)).value("run", "");
  } catch (const std::exception&) {  // Error, or json's exception if `run` is not a string
    return std::nullopt;
  }
}

// The seals of snapshots with this prefix, by iteration, newest first.
std::map<int64_t, std::string, std::greater<>> SealsOf(const std::string& prefix) {
  const std::string named = storage::FolderOf(prefix), folder = named.empty() ? "." : named;
  const std::string start = storage::NameOf(prefix) + "_iter_";
  std::map<int64_t, std::string, std::greater<>> found;
  storage::FileSystem& files = storage::For(folder);
  if (!files.Stat(folder)) return found;
  for (const storage::FileStatus& file : files.List(folder)) {
    const std::string name = storage::NameOf(file.uri);
    if (!name.starts_with(start) || !name.ends_with(kSealExtension)) continue;
    const std::string number =
        name.substr(start.size(), name.size() - start.size() - std::string(kSealExtension).size());
    // Up to 17 digits fit an int64_t.
    const bool digits = !number.empty() && number.size() < 18 &&
                        number.find_first_not_of("0123456789") == std::string::npos;
    if (digits) found[std::stoll(number)] = file.uri;
  }
  return found;
}

}  // namespace

std::string PositionToText(const TrainingPosition& position) {
  json fields = ToJson(position);
  fields["seal"] = position.seal;
  return fields.dump(-1, ' ', false, json::error_handler_t::replace);
}

TrainingPosition PositionFromText(const std::string& text) {
  try {
    return FromJson(ParseShallow(text), -1);
  } catch (const json::exception& error) {
    throw Error(ErrorCode::kDataLoss, "cannot read another rank's training position", error);
  }
}

// The seal is written after both files. If the writer dies earlier, the snapshot has no seal, or an
// older one that does not match, and training does not resume from it.
void SealSnapshot(const TrainingPosition& position, const SnapshotFiles& files) {
  json seal = ToJson(position);
  seal["version"] = 1;
  seal["model"] = Describe(files.model);
  seal["state"] = Describe(files.state);
  const auto replace = json::error_handler_t::replace;  // as in ReadSeal
  seal["sha256"] = Sha256Hex(seal.dump(-1, ' ', false, replace));
  storage::AtomicFile file(SealOf(files.state));
  file.Append(seal.dump(1, ' ', false, replace) + "\n");
  file.Commit();
}

SnapshotFiles CheckSnapshot(SnapshotFiles files) {
  const std::string uri = SealOf(files.state);
  // Caffe's snapshots have no seal and are used unchecked.
  if (!storage::Exists(uri)) return files;
  const json seal = ReadSeal(uri);
  try {
    const auto model = seal.at("model").at("file").get<std::string>();
    if (files.model.empty()) files.model = Beside(files.state, model);
    CheckFile(files.state, seal.at("state"));
    CheckFile(files.model, seal.at("model"));
    files.position = PositionIn(seal, uri);
    return files;
  } catch (const json::exception& error) {
    throw Error(ErrorCode::kDataLoss, fmt::format("{} has a missing field", uri), error);
  }
}

std::optional<SnapshotFiles> FindSnapshot(const std::string& prefix, const std::string& run,
                                          int64_t below) {
  for (const auto& [iteration, uri] : SealsOf(prefix)) {
    if (iteration >= below) continue;
    try {
      const json seal = ReadSeal(uri);
      if (seal.value("run", "") != run) continue;
      return CheckSnapshot({"", Beside(uri, seal.at("state").at("file").get<std::string>())});
    } catch (const Error& error) {
      // If the newest snapshot is only unreachable, the run must not resume from an older one.
      if (IsUnreachable(error)) throw;
      log::Warning("Skipping the snapshot of iteration {}: {}", iteration, error.message());
    } catch (const std::exception& error) {
      log::Warning("Skipping the snapshot of iteration {}: {}", iteration, error.what());
    }
  }
  return std::nullopt;
}

SnapshotFiles WholeSnapshot(const SnapshotFiles& files) {
  try {
    return CheckSnapshot(files);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDataLoss) throw;
    const std::string name = files.state.substr(0, files.state.rfind(kStateExtension));
    const size_t number = name.rfind("_iter_");
    std::optional<SnapshotFiles> before;
    // Only snapshots of the same run are considered, since another training may have used the
    // prefix before.
    if (const auto run = RunOf(files.state); run && number != std::string::npos) {
      before = FindSnapshot(name.substr(0, number), *run, std::atoll(name.c_str() + number + 6));
    }
    if (!before) throw Error(error.code(), "the run has no intact snapshot to resume from", error);
    log::Warning("Resuming from {} instead of a damaged snapshot: {}", before->state,
                 error.message());
    return *before;
  }
}

}  // namespace hearth::caffe
