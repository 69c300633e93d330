// LMDB: one memory-mapped file. The LMDB library writes it, lmdb_pages reads it.
#include <lmdb.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/caffe/data/database/backends.h"
#include "hearth/caffe/data/database/lmdb_pages.h"

namespace hearth::caffe {
namespace {

void CheckResult(int result, const std::string& path, const char* what) {
  if (result == MDB_SUCCESS) return;
  Throw(result == ENOSPC ? ErrorCode::kResourceExhausted : ErrorCode::kDataLoss,
        "cannot {} the LMDB {}: {}", what, path, mdb_strerror(result));
}

MDB_val ToVal(std::string_view bytes) {
  // The cast is safe because the LMDB library does not modify the bytes.
  return {bytes.size(), const_cast<char*>(bytes.data())};
}

class Environment {
 public:
  explicit Environment(const std::string& path) : path_(path) {
    CheckResult(mdb_env_create(&env_), path, "open");
    const int result = mdb_env_open(env_, path.c_str(), 0, 0664);
    if (result != MDB_SUCCESS) mdb_env_close(env_);
    CheckResult(result, path, "open");
  }
  ~Environment() { mdb_env_close(env_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  MDB_env* get() const { return env_; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  MDB_env* env_ = nullptr;
};

class LmdbWriter : public DatabaseWriter {
 public:
  explicit LmdbWriter(const std::string& path) : env_(MadeFolder(path)) {}

  void Put(std::string_view key, std::string_view value) override {
    pending_.emplace_back(key, value);
  }

  // The size of the memory map cannot change within a transaction, so a transaction that fills the
  // map is repeated with a larger one.
  void Commit() override {
    for (;;) {
      const int result = TryCommit();
      if (result != MDB_MAP_FULL) {
        CheckResult(result, env_.path(), "write");
        break;
      }
      MDB_envinfo info;
      mdb_env_info(env_.get(), &info);
      CheckResult(mdb_env_set_mapsize(env_.get(), 2 * info.me_mapsize), env_.path(), "enlarge");
    }
    pending_.clear();
  }

 private:
  static const std::string& MadeFolder(const std::string& path) {
    if (mkdir(path.c_str(), 0755) != 0) ThrowErrno(errno, fmt::format("cannot create {}", path));
    return path;
  }

  int TryCommit() {
    MDB_txn* transaction = nullptr;
    int result = mdb_txn_begin(env_.get(), nullptr, 0, &transaction);
    if (result != MDB_SUCCESS) return result;
    MDB_dbi dbi;
    result = mdb_dbi_open(transaction, nullptr, 0, &dbi);
    for (size_t i = 0; i < pending_.size() && result == MDB_SUCCESS; ++i) {
      MDB_val key = ToVal(pending_[i].first), value = ToVal(pending_[i].second);
      result = mdb_put(transaction, dbi, &key, &value, 0);
    }
    if (result == MDB_SUCCESS) return mdb_txn_commit(transaction);
    mdb_txn_abort(transaction);
    return result;
  }

  Environment env_;
  std::vector<std::pair<std::string, std::string>> pending_;
};

}  // namespace

std::unique_ptr<DatabaseCursor> OpenLmdb(const std::string& path) {
  const std::filesystem::path given(path);
  const bool is_file = std::filesystem::is_regular_file(given);
  return std::make_unique<LmdbPages>(is_file ? path : (given / "data.mdb").string());
}

std::unique_ptr<DatabaseWriter> CreateLmdb(const std::string& path) {
  return std::make_unique<LmdbWriter>(path);
}

}  // namespace hearth::caffe
