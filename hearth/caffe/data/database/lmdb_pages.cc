#include "hearth/caffe/data/database/lmdb_pages.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::caffe {
namespace {

constexpr uint32_t kMagic = 0xBEEFC0DE;
constexpr uint32_t kVersion = 1;
constexpr uint64_t kNoPage = ~uint64_t{0};
constexpr size_t kDeepestTree = 32;  // the LMDB library's own limit

// Layout of a page header: page number (8 bytes), padding (2), flags (2), then the end of the node
// list and the start of the nodes (2, 2), or for a large value its number of pages (4).
constexpr size_t kFlagsAt = 10, kLowerAt = 12, kPagesAt = 12, kHeaderBytes = 16;
enum PageKind : uint16_t { kBranch = 1, kLeaf = 2, kOverflow = 4, kAnyKind = 15 };

// Layout of a meta page after its header: magic (4), version (4), address and size of the map (8,
// 8), two database descriptors (48 each), last page (8), transaction (8).
constexpr size_t kMetaAt = kHeaderBytes, kDatabasesAt = kMetaAt + 24, kDatabaseBytes = 48;
constexpr size_t kTransactionAt = kDatabasesAt + 2 * kDatabaseBytes + 8;
// Layout of a database descriptor: page size (4, set only for the free pages' database), flags (2),
// depth (2), three page counts (8 each), records (8), root (8).
constexpr size_t kMainAt = kDatabasesAt + kDatabaseBytes;
constexpr size_t kDatabaseFlagsAt = 4, kDepthAt = 6, kRecordsAt = 32, kRootAt = 40;
constexpr uint16_t kReversedKeys = 2, kSortedDuplicates = 4, kIntegerKeys = 8;

// Layout of a node: value size or, in branches, child page (2, 2, 2, including flags), key size
// (2), key.
constexpr size_t kNodeBytes = 8;
enum NodeFlag : uint16_t { kLargeValue = 1, kSubDatabase = 2, kDuplicates = 4 };

// Reads through memcpy because numbers may be unaligned.
template <typename T>
T Read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

}  // namespace

LmdbPages::LmdbPages(const std::string& path) : LmdbPages(std::make_unique<LmdbFile>(path)) {}

LmdbPages::LmdbPages(std::unique_ptr<LmdbFile> file)
    : file_(std::move(file)), mapped_(file_->mapped()) {
  ReadMeta();
  LmdbPages::SeekToFirst();
}

void LmdbPages::RequireSound(bool sound, const char* what, uint64_t page) const {
  Require(sound, ErrorCode::kDataLoss,
          "the LMDB {} is damaged: {} (page {} of {}); create it again from its source",
          file_->name(), what, page, pages_);
}

// `page` must be inside the file.
template <typename T>
T LmdbPages::At(uint64_t page, size_t offset) const {
  RequireSound(offset + sizeof(T) <= page_size_, "a number is out of bounds", page);
  return Read<T>(PageAt(page) + offset);
}

const std::byte* LmdbPages::PageAt(uint64_t page) const {
  return mapped_ != nullptr ? mapped_ + page * page_size_ : file_->Page(page, page_size_);
}

uint16_t LmdbPages::KindOf(uint64_t page) const { return At<uint16_t>(page, kFlagsAt) & kAnyKind; }

// Of the two meta pages, the one with the higher transaction number is valid.
void LmdbPages::ReadMeta() {
  page_size_ = kMetaAt + kTransactionAt;
  Require(file_->size() >= page_size_, ErrorCode::kDataLoss,
          "{} is not an LMDB: {} bytes cannot hold its first page", file_->name(), file_->size());
  Require(At<uint32_t>(0, kMetaAt) == kMagic && At<uint32_t>(0, kMetaAt + 4) == kVersion,
          ErrorCode::kDataLoss, "{} is not an LMDB of a supported version", file_->name());
  const size_t size = At<uint32_t>(0, kDatabasesAt);
  const bool possible = size >= 512 && size <= 65536 && (size & (size - 1)) == 0;
  RequireSound(possible && file_->size() >= 2 * size, "its page size is invalid", 0);
  page_size_ = size;
  pages_ = file_->size() / page_size_;
  const bool second_valid = At<uint32_t>(1, kMetaAt) == kMagic;
  const bool second_later = At<uint64_t>(1, kTransactionAt) > At<uint64_t>(0, kTransactionAt);
  const uint64_t meta = second_valid && second_later ? 1 : 0;
  root_ = At<uint64_t>(meta, kMainAt + kRootAt);
  depth_ = At<uint16_t>(meta, kMainAt + kDepthAt);
  records_ = At<uint64_t>(meta, kMainAt + kRecordsAt);
  const auto flags = At<uint16_t>(meta, kMainAt + kDatabaseFlagsAt);
  plain_order_ = (flags & (kReversedKeys | kIntegerKeys)) == 0;
  RequireSound((flags & kSortedDuplicates) == 0, "it holds several values per key", meta);
  RequireSound(depth_ <= kDeepestTree, "its tree is too deep", meta);
  RequireSound(records_ <= file_->size() / kNodeBytes, "its record count exceeds its size", meta);
}

void LmdbPages::SeekToFirst() {
  levels_.clear();
  read_ = 1;
  if (root_ == kNoPage) return;
  Descend(root_);
  ReadRecord();
}

void LmdbPages::Skip(uint64_t records) {
  while (records > 0 && valid()) {
    Level& leaf = levels_.back();
    const uint64_t here = std::min<uint64_t>(records, leaf.count - leaf.index);
    leaf.index += here - 1;
    records -= here;
    read_ += here;
    LeaveRecord();
    // Without this check, pages that reference each other in a cycle would yield records forever.
    RequireSound(!valid() || read_ <= records_, "it has more records than its header says", root_);
  }
  if (valid()) ReadRecord();
}

void LmdbPages::RequirePlainOrder() const {
  Require(plain_order_, ErrorCode::kUnimplemented,
          "the LMDB {} orders its keys backwards or as integers; it can only be read from its "
          "beginning",
          file_->name());
}

void LmdbPages::Seek(std::string_view key) {
  RequirePlainOrder();
  levels_.clear();
  read_ = 1;
  if (root_ == kNoPage) return;
  Enter(root_);
  while (levels_.size() < depth_) {
    // The first child contains all keys below the second child's key, and the key of the first node
    // is always empty.
    Level& branch = levels_.back();
    branch.index =
        std::max<size_t>(1, CountWhile(branch, [&](const Node& node) { return node.key <= key; })) -
        1;
    Enter(NodeAt(branch).number);
  }
  Level& leaf = levels_.back();
  leaf.index = CountWhile(leaf, [&](const Node& node) { return node.key < key; });
  if (leaf.index == leaf.count) {
    --leaf.index;
    LeaveRecord();
  }
  if (valid()) ReadRecord();
}

std::vector<LmdbSubtree> LmdbPages::Subtrees(size_t wanted) {
  RequirePlainOrder();
  std::vector<LmdbSubtree> found;
  if (root_ != kNoPage) found.push_back({"", root_});
  for (size_t above = 0; found.size() < wanted && above + 1 < depth_; ++above) {
    std::vector<LmdbSubtree> below;
    for (const LmdbSubtree& tree : found) {
      // Enter() derives a page's depth from the number of levels above it.
      levels_.assign(above, Level{});
      Enter(tree.page);
      Level branch = levels_.back();
      for (; branch.index < branch.count; ++branch.index) {
        const Node node = NodeAt(branch);
        // The first node of a branch has an empty key; its subtree begins at the first key of the
        // branch.
        below.push_back({branch.index == 0 ? tree.first_key : std::string(node.key), node.number});
      }
      RequireSound(below.size() <= pages_, "its pages reference each other in a cycle", tree.page);
    }
    found = std::move(below);
  }
  levels_.clear();
  return found;
}

// Binary search in the sorted nodes of a page: the number of leading nodes that satisfy `before`.
template <typename Before>
size_t LmdbPages::CountWhile(Level level, Before before) const {
  size_t low = 0, high = level.count;
  while (low < high) {
    level.index = low + (high - low) / 2;
    if (before(NodeAt(level))) {
      low = level.index + 1;
    } else {
      high = level.index;
    }
  }
  return low;
}

void LmdbPages::LeaveRecord() {
  while (!levels_.empty() && ++levels_.back().index >= levels_.back().count) levels_.pop_back();
  if (!levels_.empty() && levels_.size() < depth_) Descend(NodeAt(levels_.back()).number);
}

void LmdbPages::Enter(uint64_t page) {
  RequireSound(page >= 2 && page < pages_, "a page number is out of bounds", page);
  const bool leaf = levels_.size() + 1 == depth_;
  RequireSound(levels_.size() < depth_ && KindOf(page) == (leaf ? kLeaf : kBranch),
               "a page has the wrong type", page);
  const size_t lower = At<uint16_t>(page, kLowerAt);
  // Without this check, a damaged file could make a cursor visit leaves without records forever.
  RequireSound(lower >= kHeaderBytes + sizeof(uint16_t) && lower <= page_size_,
               "a page has no nodes", page);
  levels_.push_back({page, 0, (lower - kHeaderBytes) / sizeof(uint16_t)});
}

// Moves to the first record below `page`.
void LmdbPages::Descend(uint64_t page) {
  for (Enter(page); levels_.size() < depth_;) Enter(NodeAt(levels_.back()).number);
}

LmdbPages::Node LmdbPages::NodeAt(const Level& level) const {
  const uint64_t page = level.page;
  const size_t at = At<uint16_t>(page, kHeaderBytes + level.index * sizeof(uint16_t));
  const auto part = [&](size_t i) { return uint64_t{At<uint16_t>(page, at + 2 * i)}; };
  Node node;
  node.flags = At<uint16_t>(page, at + 4);
  node.number = part(0) | part(1) << 16;
  if (levels_.size() < depth_) node.number |= part(2) << 32;
  const size_t key_bytes = At<uint16_t>(page, at + 6);
  node.data = at + kNodeBytes + key_bytes;
  RequireSound(node.data <= page_size_, "a key is out of bounds", page);
  const auto* bytes = reinterpret_cast<const char*>(PageAt(page));
  node.key = {bytes + at + kNodeBytes, key_bytes};
  return node;
}

void LmdbPages::ReadRecord() {
  const uint64_t page = levels_.back().page;
  RequireSound(read_ <= records_, "it has more records than its header says", page);
  const Node node = NodeAt(levels_.back());
  RequireSound((node.flags & (kSubDatabase | kDuplicates)) == 0,
               "it holds a named database or several values per key", page);
  key_ = node.key;
  if ((node.flags & kLargeValue) != 0) {
    value_ = LargeValue(At<uint64_t>(page, node.data), node.number);
    return;
  }
  RequireSound(node.number <= page_size_ - node.data, "a value is out of bounds", page);
  value_ = {reinterpret_cast<const char*>(PageAt(page)) + node.data, node.number};
}

// A large value is stored on consecutive pages behind one header and is read in one request. If its
// header were read as a page of the tree, read-ahead would fetch all values of a remote file twice.
std::string_view LmdbPages::LargeValue(uint64_t page, uint64_t bytes) const {
  constexpr auto kOutside = "a large value is out of bounds";
  RequireSound(page >= 2 && page < pages_, kOutside, page);
  RequireSound(bytes <= (pages_ - page) * page_size_ - kHeaderBytes, kOutside, page);
  const std::byte* header = file_->Value(page * page_size_, kHeaderBytes + bytes);
  const auto kind = Read<uint16_t>(header + kFlagsAt);
  RequireSound((kind & kAnyKind) == kOverflow, "a large value's page has the wrong type", page);
  const uint64_t room = Read<uint32_t>(header + kPagesAt) * uint64_t{page_size_};
  RequireSound(kHeaderBytes + bytes <= room, kOutside, page);
  return {reinterpret_cast<const char*>(header) + kHeaderBytes, bytes};
}

}  // namespace hearth::caffe
