// LevelDB: a folder of sorted tables and a log.
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include "hearth/base/error.h"
#include "hearth/caffe/data/database/backends.h"
#include "hearth/caffe/data/database/read_only_env.h"

namespace hearth::caffe {
namespace {

void CheckStatus(const leveldb::Status& status, const std::string& path, const char* what) {
  if (status.ok()) return;
  Throw(ErrorCode::kDataLoss, "cannot {} the LevelDB {}: {}", what, path, status.ToString());
}

leveldb::Slice ToSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
std::string_view ToView(const leveldb::Slice& slice) { return {slice.data(), slice.size()}; }

std::unique_ptr<leveldb::DB> Open(const leveldb::Options& options, const std::string& path) {
  leveldb::DB* database = nullptr;
  CheckStatus(leveldb::DB::Open(options, path, &database), path, "open");
  return std::unique_ptr<leveldb::DB>(database);
}

class LevelDbCursor : public DatabaseCursor {
 public:
  explicit LevelDbCursor(const std::string& path) : path_(path) {
    leveldb::Options options;
    options.env = &env_;
    options.max_open_files = 100;
    database_ = Open(options, path);
    env_.Seal();
    leveldb::ReadOptions once;
    once.fill_cache = false;  // every record is read once per epoch
    once.verify_checksums = true;
    iterator_.reset(database_->NewIterator(once));
    LevelDbCursor::SeekToFirst();
  }

  void SeekToFirst() override {
    iterator_->SeekToFirst();
    CheckStatus(iterator_->status(), path_, "read");
  }
  void Next() override {
    iterator_->Next();
    CheckStatus(iterator_->status(), path_, "read");
  }
  bool valid() const override { return iterator_->Valid(); }
  std::string_view key() const override { return ToView(iterator_->key()); }
  std::string_view value() const override { return ToView(iterator_->value()); }

 private:
  const std::string path_;
  ReadOnlyEnv env_;
  std::unique_ptr<leveldb::DB> database_;
  std::unique_ptr<leveldb::Iterator> iterator_;
};

class LevelDbWriter : public DatabaseWriter {
 public:
  explicit LevelDbWriter(const std::string& path) : path_(path) {
    leveldb::Options options;
    options.create_if_missing = true;
    options.error_if_exists = true;
    // Caffe's sizes: records are written once and in bulk.
    options.block_size = 65536;
    options.write_buffer_size = 256 << 20;
    options.max_open_files = 100;
    database_ = Open(options, path);
  }

  void Put(std::string_view key, std::string_view value) override {
    batch_.Put(ToSlice(key), ToSlice(value));
  }

  void Commit() override {
    leveldb::WriteOptions options;
    options.sync = true;
    CheckStatus(database_->Write(options, &batch_), path_, "write");
    batch_.Clear();
  }

 private:
  const std::string path_;
  std::unique_ptr<leveldb::DB> database_;
  leveldb::WriteBatch batch_;
};

}  // namespace

std::unique_ptr<DatabaseCursor> OpenLevelDb(const std::string& path) {
  return std::make_unique<LevelDbCursor>(path);
}

std::unique_ptr<DatabaseWriter> CreateLevelDb(const std::string& path) {
  return std::make_unique<LevelDbWriter>(path);
}

}  // namespace hearth::caffe
