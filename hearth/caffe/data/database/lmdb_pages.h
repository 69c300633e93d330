// Reads the B+tree in an LMDB file without the LMDB library. The library trusts every page, so a
// damaged file would crash the process; this reader checks all bounds. The file must not change.
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

// A subtree: its root page, and a lower bound of its keys.
struct LmdbSubtree {
  std::string first_key;
  uint64_t page = 0;
};

// A cursor over the records of an LMDB's unnamed database, in key order, for one thread. It takes
// no lock, so the database must not be written meanwhile. Throws kDataLoss, naming the file, if the
// file is damaged.
class LmdbPages : public DatabaseCursor {
 public:
  // `path` is the data file or its URI. The cursor starts at the first record.
  explicit LmdbPages(const std::string& path);
  explicit LmdbPages(std::unique_ptr<LmdbFile> file);

  void SeekToFirst() override;
  void Next() override { Skip(1); }
  // Moves forward by this number of records. Of the pages in between, it reads only the headers.
  void Skip(uint64_t records);
  void Seek(std::string_view key) override;
  // Splits the tree into the subtrees, in key order, that begin at the topmost level with at least
  // `wanted` pages, or else at the leaves. Reads only the levels above it. Leaves the cursor after
  // the last record.
  std::vector<LmdbSubtree> Subtrees(size_t wanted);
  uint64_t records() const { return records_; }
  size_t page_size() const { return page_size_; }
  uint64_t fetched() const override { return file_->fetched(); }
  bool valid() const override { return !levels_.empty(); }
  bool keeps_values() const override { return mapped_ != nullptr; }
  std::string_view key() const override { return key_; }
  std::string_view value() const override { return value_; }

 private:
  // A page on the path from the root to the current record, with its current node's index and its
  // number of nodes.
  struct Level {
    uint64_t page;
    size_t index, count;
  };
  // An entry of a page: a record, or a reference to a child page.
  struct Node {
    uint64_t number;  // size of the value, or the child's page
    uint16_t flags;
    std::string_view key;
    size_t data;  // offset of the value in its page
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
  const std::byte* const mapped_;  // null if the file is read by pages
  size_t page_size_ = 0;
  uint64_t pages_ = 0;  // number of pages in the file
  uint64_t root_ = 0;
  size_t depth_ = 0;
  uint64_t records_ = 0;  // according to the meta page
  // Records passed since SeekToFirst or Seek, including skipped ones and the current one.
  uint64_t read_ = 0;
  bool plain_order_ = true;    // true if keys are in byte order
  std::vector<Level> levels_;  // from the root to the record's leaf; empty after the last record
  std::string_view key_, value_;
};

}  // namespace hearth::caffe
