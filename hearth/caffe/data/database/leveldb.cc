// LevelDB: a folder of sorted tables and a log.
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/data/database/backends.h"
#include "hearth/caffe/data/database/leveldb_rows.h"
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
    options.paranoid_checks = true;  // otherwise LevelDB skips damaged log records
    options.max_open_files = 100;
    database_ = Open(options, path);
    env_.Seal();
    leveldb::ReadOptions once;
    once.fill_cache = false;  // no caching: every record is read once per epoch
    once.verify_checksums = true;
    iterator_.reset(database_->NewIterator(once));
    LevelDbCursor::SeekToFirst();
  }

  void SeekToFirst() override {
    iterator_->SeekToFirst();
    CheckStatus(iterator_->status(), path_, "read");
  }
  void Seek(std::string_view key) override {
    iterator_->Seek(ToSlice(key));
    CheckStatus(iterator_->status(), path_, "read");
  }
  void SeekToLast() {
    iterator_->SeekToLast();
    CheckStatus(iterator_->status(), path_, "read");
  }
  // Approximate number of bytes that the database's files contain before `key`, to about a block.
  uint64_t BytesBefore(std::string_view key) {
    const leveldb::Range range("", ToSlice(key));
    uint64_t bytes = 0;
    database_->GetApproximateSizes(&range, 1, &bytes);
    return bytes;
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
    // The sizes that Caffe uses; they suit records that are written once and in bulk.
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

// Divides the database into parts whose numbers of records differ by at most one. If there are
// fewer records than parts, the last parts are empty and have the first_key "".
std::vector<DatumRange> DivideByRecords(LevelDbCursor* cursor, uint64_t parts) {
  uint64_t records = 0;
  for (cursor->SeekToFirst(); cursor->valid(); cursor->Next()) ++records;
  std::vector<DatumRange> ranges(parts);
  uint64_t at = 0;
  cursor->SeekToFirst();
  for (uint64_t part = 0; part < parts; ++part) {
    const uint64_t end = PartBegin(records, part + 1, parts);
    if (cursor->valid()) ranges[part].first_key = cursor->key();
    ranges[part].count = end - at;
    for (; at < end; ++at) cursor->Next();
  }
  return ranges;
}

// Maps 64-bit numbers, in order, to keys between the first and the last key. A key consists of the
// prefix that these two keys share and of the number's eight bytes.
class KeyScale {
 public:
  KeyScale(std::string_view first, std::string_view last)
      : common_(first.begin(),
                std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first) {}

  std::string KeyAt(uint64_t number) const {
    std::string key = common_;
    for (int shift = 56; shift >= 0; shift -= 8) key += static_cast<char>(number >> shift & 0xff);
    return key;
  }

 private:
  const std::string common_;
};

std::vector<DatumRange> DivideByBytes(LevelDbCursor* cursor, uint64_t parts, uint64_t bytes) {
  cursor->SeekToLast();
  const std::string last(cursor->key());
  cursor->SeekToFirst();
  const KeyScale scale(cursor->key(), last);
  std::vector<DatumRange> ranges(parts);
  ranges[0].first_key = cursor->key();
  for (uint64_t part = 1; part < parts; ++part) {
    const uint64_t wanted = bytes / parts * part;
    uint64_t low = 0, high = std::numeric_limits<uint64_t>::max();
    // Binary search for the smallest number whose key is preceded by at least `wanted` bytes of the
    // database.
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      if (cursor->BytesBefore(scale.KeyAt(middle)) < wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    cursor->Seek(scale.KeyAt(low));
    if (cursor->valid()) {
      ranges[part].first_key = std::max(ranges[part - 1].first_key, std::string(cursor->key()));
    } else {
      ranges[part].first_key = last;  // the previous part then has all other records
    }
    ranges[part - 1].end_key = ranges[part].first_key;
  }
  return ranges;
}

}  // namespace

std::vector<DatumRange> DivideLevelDb(const std::string& path, uint64_t parts, uint64_t small) {
  Require(parts > 0, ErrorCode::kInvalidArgument, "the LevelDB {} cannot be read in 0 parts", path);
  LevelDbCursor cursor(path);
  uint64_t bytes = 0;
  if (cursor.valid()) {
    cursor.SeekToLast();
    bytes = cursor.BytesBefore(cursor.key());
    cursor.SeekToFirst();
  }
  const bool by_records = bytes < small || !cursor.valid();
  return by_records ? DivideByRecords(&cursor, parts) : DivideByBytes(&cursor, parts, bytes);
}

std::unique_ptr<DatumRows> ReadLevelDb(const std::string& path, DatumRange range) {
  return std::make_unique<DatumRows>(std::make_unique<LevelDbCursor>(path),
                                     fmt::format("the LevelDB {}", path), std::move(range));
}

std::unique_ptr<DatabaseCursor> OpenLevelDb(const std::string& path) {
  return std::make_unique<LevelDbCursor>(path);
}

std::unique_ptr<DatabaseWriter> CreateLevelDb(const std::string& path) {
  return std::make_unique<LevelDbWriter>(path);
}

}  // namespace hearth::caffe
