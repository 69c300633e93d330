// Reads the B+tree in an LMDB file without the LMDB library. The library trusts every page, so that
// a damaged file would end the process; here each bound is checked. The file must not change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/caffe/data/database/database.h"
#include "hearth/caffe/data/database/lmdb_file.h"

namespace hearth::caffe {

// A part of the tree: its page, and a key that none of its records comes before.
struct LmdbSubtree {
  std::string first_key;
  uint64_t page = 0;
};

// A cursor over the records of the unnamed database, in key order. One thread. It takes no lock:
// a database is not written meanwhile. Throws kDataLoss, naming the file, when it meets
// damage.
class LmdbPages : public DatabaseCursor {
 public:
  // `path`: the data file, or its URI. At the first record.
  explicit LmdbPages(const std::string& path);
  explicit LmdbPages(std::unique_ptr<LmdbFile> file);

  void SeekToFirst() override;
  void Next() override { Skip(1); }
  // Passes over records by what their pages' headers say, without looking at them.
  void Skip(uint64_t records);
  void Seek(std::string_view key) override;
  // All of the tree in key order, cut where its pages are: on the first level with so many, or into
  // its leaves. Reads the levels above alone. The cursor stands behind the last record then.
  std::vector<LmdbSubtree> Subtrees(size_t wanted);
  uint64_t records() const { return records_; }
  size_t page_size() const { return page_size_; }
  uint64_t fetched() const override { return file_->fetched(); }
  bool valid() const override { return !levels_.empty(); }
  bool keeps_values() const override { return mapped_ != nullptr; }
  std::string_view key() const override { return key_; }
  std::string_view value() const override { return value_; }

 private:
  struct Level {
    uint64_t page;
    size_t index, count;
  };
  struct Node {
    uint64_t number;  // bytes of the value, or the child's page
    uint16_t flags;
    std::string_view key;
    size_t data;  // where the value begins in its page
  };

  template <typename T>
  T At(uint64_t page, size_t offset) const;
  const std::byte* PageAt(uint64_t page) const;
  uint16_t KindOf(uint64_t page) const;
  void ReadMeta();
  void RequirePlainOrder() const;
  void Enter(uint64_t page);
  void Descend(uint64_t page);
  void LeaveRecord();
  void ReadRecord();
  Node NodeAt(const Level& level) const;
  template <typename Before>
  size_t CountWhile(Level level, Before before) const;
  std::string_view LargeValue(uint64_t page, uint64_t bytes) const;
  void RequireSound(bool sound, const char* what, uint64_t page) const;

  const std::unique_ptr<LmdbFile> file_;
  const std::byte* const mapped_;  // null: by pages
  size_t page_size_ = 0;
  uint64_t pages_ = 0;  // in the file
  uint64_t root_ = 0;
  size_t depth_ = 0;
  uint64_t records_ = 0;       // the file's own count
  uint64_t read_ = 0;          // since SeekToFirst or Seek, this one and those passed over
  bool plain_order_ = true;    // keys are ordered by their bytes, from the first on
  std::vector<Level> levels_;  // from the root to the record's leaf; none after the last record
  std::string_view key_, value_;
};

}  // namespace hearth::caffe
