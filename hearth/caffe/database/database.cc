#include "hearth/caffe/database/database.h"

#include <filesystem>

#include "hearth/base/error.h"
#include "hearth/caffe/database/backends.h"
#include "hearth/storage/uri.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;

// What tells the two kinds apart.
bool IsLmdb(const fs::path& path) {
  return fs::is_regular_file(path) || fs::exists(path / "data.mdb");
}
bool IsLevelDb(const fs::path& path) { return fs::exists(path / "CURRENT"); }

void RequireKind(DataParameter::DB backend, const std::string& path) {
  Require(fs::exists(path), ErrorCode::kNotFound, "there is no database {}", path);
  const bool is_lmdb = IsLmdb(path), is_level_db = IsLevelDb(path);
  Require(is_lmdb || is_level_db, ErrorCode::kNotFound,
          "{} is no database: it has neither data.mdb (LMDB) nor CURRENT (LevelDB)", path);
  Require(backend == DataParameter::LMDB ? is_lmdb : is_level_db, ErrorCode::kInvalidArgument,
          "{} is a database of the other kind; set backend: {}", path,
          is_lmdb ? "LMDB" : "LEVELDB");
}

}  // namespace

DataParameter::DB BackendNamed(std::string_view name) {
  if (name == "lmdb") return DataParameter::LMDB;
  Require(name == "leveldb", ErrorCode::kInvalidArgument,
          "there is no database backend '{}'; give lmdb or leveldb", name);
  return DataParameter::LEVELDB;
}

std::unique_ptr<DatabaseCursor> OpenDatabase(DataParameter::DB backend, const std::string& uri) {
  const std::string path = storage::LocalPath(uri);
  RequireKind(backend, path);
  return backend == DataParameter::LMDB ? OpenLmdb(path) : OpenLevelDb(path);
}

std::unique_ptr<DatabaseWriter> CreateDatabase(DataParameter::DB backend, const std::string& uri) {
  const std::string path = storage::LocalPath(uri);
  Require(!fs::exists(path), ErrorCode::kInvalidArgument,
          "{} is there already; remove it, or name another database", path);
  return backend == DataParameter::LMDB ? CreateLmdb(path) : CreateLevelDb(path);
}

}  // namespace hearth::caffe
