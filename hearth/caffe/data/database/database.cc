#include "hearth/caffe/data/database/database.h"

#include <exception>
#include <filesystem>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/data/database/backends.h"
#include "hearth/storage/uri.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;

// The files that identify the two formats.
bool IsLmdb(const fs::path& path) {
  return fs::is_regular_file(path) || fs::exists(path / "data.mdb");
}
bool IsLevelDb(const fs::path& path) { return fs::exists(path / "CURRENT"); }

void RequireKind(DataParameter::DB backend, const std::string& path) {
  Require(fs::exists(path), ErrorCode::kNotFound, "there is no database {}", path);
  const bool is_lmdb = IsLmdb(path), is_level_db = IsLevelDb(path);
  Require(is_lmdb || is_level_db, ErrorCode::kNotFound,
          "{} is not a database: it has neither data.mdb (LMDB) nor CURRENT (LevelDB)", path);
  Require(backend == DataParameter::LMDB ? is_lmdb : is_level_db, ErrorCode::kInvalidArgument,
          "{} does not have the format that backend names; set backend: {}", path,
          is_lmdb ? "LMDB" : "LEVELDB");
}

// A writer that removes the folder of the database if an exception leaves the database incomplete.
class WholeOrNone : public DatabaseWriter {
 public:
  WholeOrNone(std::unique_ptr<DatabaseWriter> writer, std::string path)
      : writer_(std::move(writer)), path_(std::move(path)) {}
  ~WholeOrNone() override {
    writer_.reset();
    std::error_code ignored;
    if (std::uncaught_exceptions() > exceptions_before_) fs::remove_all(path_, ignored);
  }

  void Put(std::string_view key, std::string_view value) override { writer_->Put(key, value); }
  void Commit() override { writer_->Commit(); }

 private:
  const int exceptions_before_ = std::uncaught_exceptions();
  std::unique_ptr<DatabaseWriter> writer_;
  const std::string path_;
};

}  // namespace

void SetShape(int64_t channels, int64_t height, int64_t width, Datum* datum) {
  datum->set_channels(static_cast<int32_t>(channels));
  datum->set_height(static_cast<int32_t>(height));
  datum->set_width(static_cast<int32_t>(width));
}

DataParameter::DB BackendNamed(std::string_view name) {
  if (name == "lmdb") return DataParameter::LMDB;
  Require(name == "leveldb", ErrorCode::kInvalidArgument,
          "unknown database backend '{}'; use lmdb or leveldb", name);
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
          "{} already exists; remove it, or choose another database", path);
  auto writer = backend == DataParameter::LMDB ? CreateLmdb(path) : CreateLevelDb(path);
  return std::make_unique<WholeOrNone>(std::move(writer), path);
}

}  // namespace hearth::caffe
