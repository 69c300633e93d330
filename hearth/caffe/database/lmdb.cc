// LMDB: one memory-mapped file.
#include <lmdb.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/caffe/database/backends.h"

namespace hearth::caffe {
namespace {

void Check(int result, const std::string& path, const char* what) {
  if (result == MDB_SUCCESS) return;
  Throw(result == ENOSPC ? ErrorCode::kResourceExhausted : ErrorCode::kDataLoss,
        "cannot {} the LMDB {}: {}", what, path, mdb_strerror(result));
}

MDB_val ToVal(std::string_view bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};  // LMDB does not write through it
}
std::string_view ToView(const MDB_val& val) {
  return {static_cast<const char*>(val.mv_data), val.mv_size};
}

class Environment {
 public:
  Environment(const std::string& path, unsigned flags) : path_(path) {
    Check(mdb_env_create(&env_), path, "open");
    if (std::filesystem::is_regular_file(path)) flags |= MDB_NOSUBDIR;
    const int result = mdb_env_open(env_, path.c_str(), flags, 0664);
    if (result != MDB_SUCCESS) mdb_env_close(env_);
    Check(result, path, "open");
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

class LmdbCursor : public DatabaseCursor {
 public:
  // Without LMDB's lock file: it protects from writers only, needs a folder that can be written,
  // and breaks where one process opens a database twice, as train and test nets do.
  explicit LmdbCursor(const std::string& path) : env_(path, MDB_RDONLY | MDB_NOTLS | MDB_NOLOCK) {
    Check(mdb_txn_begin(env_.get(), nullptr, MDB_RDONLY, &transaction_), path, "read");
    try {
      MDB_dbi dbi;
      Check(mdb_dbi_open(transaction_, nullptr, 0, &dbi), path, "read");
      Check(mdb_cursor_open(transaction_, dbi, &cursor_), path, "read");
      LmdbCursor::SeekToFirst();
    } catch (...) {
      Close();
      throw;
    }
  }
  ~LmdbCursor() override { Close(); }

  void SeekToFirst() override { Move(MDB_FIRST); }
  void Next() override { Move(MDB_NEXT); }
  bool valid() const override { return valid_; }
  std::string_view key() const override { return ToView(key_); }
  std::string_view value() const override { return ToView(value_); }

 private:
  void Move(MDB_cursor_op operation) {
    const int result = mdb_cursor_get(cursor_, &key_, &value_, operation);
    valid_ = result != MDB_NOTFOUND;
    if (valid_) Check(result, env_.path(), "read");
  }

  void Close() {
    if (cursor_ != nullptr) mdb_cursor_close(cursor_);
    mdb_txn_abort(transaction_);
  }

  Environment env_;
  MDB_txn* transaction_ = nullptr;
  MDB_cursor* cursor_ = nullptr;
  MDB_val key_{}, value_{};
  bool valid_ = false;
};

class LmdbWriter : public DatabaseWriter {
 public:
  explicit LmdbWriter(const std::string& path) : env_(MadeFolder(path), 0) {}

  void Put(std::string_view key, std::string_view value) override {
    pending_.emplace_back(key, value);
  }

  // The map has a size that is fixed while a transaction runs: one that fills it is done again in a
  // larger one.
  void Commit() override {
    for (;;) {
      const int result = TryCommit();
      if (result != MDB_MAP_FULL) {
        Check(result, env_.path(), "write");
        break;
      }
      MDB_envinfo info;
      mdb_env_info(env_.get(), &info);
      Check(mdb_env_set_mapsize(env_.get(), 2 * info.me_mapsize), env_.path(), "enlarge");
    }
    pending_.clear();
  }

 private:
  static const std::string& MadeFolder(const std::string& path) {
    if (mkdir(path.c_str(), 0755) != 0) ThrowErrno(errno, fmt::format("cannot make {}", path));
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
  return std::make_unique<LmdbCursor>(path);
}

std::unique_ptr<DatabaseWriter> CreateLmdb(const std::string& path) {
  return std::make_unique<LmdbWriter>(path);
}

}  // namespace hearth::caffe
