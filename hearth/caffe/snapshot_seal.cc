#include "hearth/caffe/snapshot_seal.h"

#include <cmath>
#include <filesystem>
#include <fstream>
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

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kSealExtension[] = ".hearth.json";
constexpr char kStateExtension[] = ".solverstate";

std::string SealOf(const std::string& state) {
  return state.substr(0, state.rfind(kStateExtension)) + kSealExtension;
}

std::string HashFile(const std::string& uri, uint64_t* size) {
  std::ifstream file(storage::LocalPath(uri), std::ios::binary);
  Require(file.good(), ErrorCode::kDataLoss, "{} is not there or cannot be read", uri);
  Sha256 hash;
  std::string block(1 << 20, '\0');
  *size = 0;
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    const auto count = static_cast<size_t>(file.gcount());
    hash.Append({block.data(), count});
    *size += count;
  }
  return hash.Hex();
}

json Describe(const std::string& uri) {
  uint64_t size = 0;
  const std::string hash = HashFile(uri, &size);
  return {{"file", fs::path(storage::LocalPath(uri)).filename().string()},
          {"bytes", size},
          {"sha256", hash}};
}

void CheckFile(const std::string& uri, const json& sealed) {
  uint64_t size = 0;
  const std::string hash = HashFile(uri, &size);
  const auto expected = sealed.at("bytes").get<uint64_t>();
  Require(size == expected, ErrorCode::kDataLoss, "{} has {} bytes instead of {}", uri, size,
          expected);
  Require(hash == sealed.at("sha256").get<std::string>(), ErrorCode::kDataLoss,
          "{} is damaged: its SHA-256 is not the one in its seal", uri);
}

json ToJson(const TrainingPosition& position) {
  return {{"run", position.run},
          {"iteration", position.iteration},
          {"current_step", position.current_step},
          {"seed", position.seed},
          {"ranks", position.ranks},
          {"epoch", position.epoch},
          {"fetches", position.fetches},
          {"losses", position.losses},
          {"notes", position.notes}};
}

TrainingPosition FromJson(const json& fields) {
  TrainingPosition position;
  fields.at("run").get_to(position.run);
  fields.at("iteration").get_to(position.iteration);
  fields.at("current_step").get_to(position.current_step);
  fields.at("seed").get_to(position.seed);
  fields.at("ranks").get_to(position.ranks);
  fields.at("epoch").get_to(position.epoch);
  fields.at("fetches").get_to(position.fetches);
  for (const json& loss : fields.at("losses")) {  // JSON writes a loss that is no number as null
    position.losses.push_back(loss.is_null() ? std::numeric_limits<float>::quiet_NaN()
                                             : loss.get<float>());
  }
  position.notes = fields.value("notes", "");
  return position;
}

// The seal's own checksum is that of its text without it.
json ReadSeal(const std::string& uri) {
  json seal = json::parse(storage::ReadFile(uri), nullptr, /*allow_exceptions=*/false);
  const bool has_hash = seal.is_object() && seal.contains("sha256") && seal["sha256"].is_string();
  Require(has_hash, ErrorCode::kDataLoss, "{} is cut off or damaged", uri);
  const std::string hash = seal["sha256"];
  seal.erase("sha256");
  const std::string text = seal.dump(-1, ' ', false, json::error_handler_t::replace);
  Require(hash == Sha256Hex(text), ErrorCode::kDataLoss, "{} is damaged", uri);
  return seal;
}

std::string Beside(const std::string& state, const std::string& file) {
  return (fs::path(storage::LocalPath(state)).parent_path() / file).string();
}

// The seals under `prefix` by iteration, the newest first.
std::map<int64_t, std::string, std::greater<>> SealsOf(const std::string& prefix) {
  const fs::path path = storage::LocalPath(prefix);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::string start = path.filename().string() + "_iter_";
  std::map<int64_t, std::string, std::greater<>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(start) || !name.ends_with(kSealExtension)) continue;
    const std::string number =
        name.substr(start.size(), name.size() - start.size() - std::string(kSealExtension).size());
    const bool digits = !number.empty() && number.size() < 18 &&
                        number.find_first_not_of("0123456789") == std::string::npos;
    if (digits) found[std::stoll(number)] = entry.path().string();
  }
  return found;
}

}  // namespace

std::string PositionToText(const TrainingPosition& position) { return ToJson(position).dump(); }

TrainingPosition PositionFromText(const std::string& text) {
  try {
    return FromJson(json::parse(text));
  } catch (const json::exception& error) {
    throw Error(ErrorCode::kDataLoss, "a training's position cannot be read", error);
  }
}

void SealSnapshot(const TrainingPosition& position, const SnapshotFiles& files) {
  json seal = ToJson(position);
  seal["version"] = 1;
  seal["model"] = Describe(files.model);
  seal["state"] = Describe(files.state);
  seal["sha256"] = Sha256Hex(seal.dump());
  storage::AtomicFile file(SealOf(files.state));
  file.Append(seal.dump(1) + "\n");
  file.Commit();
}

SnapshotFiles CheckSnapshot(SnapshotFiles files) {
  const std::string uri = SealOf(files.state);
  if (!fs::exists(storage::LocalPath(uri))) return files;
  const json seal = ReadSeal(uri);
  try {
    const auto model = seal.at("model").at("file").get<std::string>();
    if (files.model.empty()) files.model = Beside(files.state, model);
    CheckFile(files.state, seal.at("state"));
    CheckFile(files.model, seal.at("model"));
    files.position = FromJson(seal);
    return files;
  } catch (const json::exception& error) {
    throw Error(ErrorCode::kDataLoss, fmt::format("{} lacks a field", uri), error);
  }
}

std::optional<SnapshotFiles> FindSnapshot(const std::string& prefix, const std::string& run,
                                          int64_t below) {
  for (const auto& [iteration, uri] : SealsOf(prefix)) {
    if (iteration >= below) continue;
    try {
      const json seal = ReadSeal(uri);
      if (!run.empty() && seal.value("run", "") != run) continue;
      return CheckSnapshot({"", Beside(uri, seal.at("state").at("file").get<std::string>())});
    } catch (const std::exception& error) {
      log::Warning("Passing over the snapshot of iteration {}: {}", iteration, error.what());
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
    if (number != std::string::npos) {
      before = FindSnapshot(name.substr(0, number), "", std::atoll(name.c_str() + number + 6));
    }
    if (!before) throw Error(error.code(), "there is no whole snapshot to resume from", error);
    log::Warning("Resuming from {} instead of a damaged snapshot: {}", before->state,
                 error.message());
    return *before;
  }
}

}  // namespace hearth::caffe
