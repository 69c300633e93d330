#include "hearth/formats/pickle_guard.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace hearth::formats {
namespace {

constexpr uint32_t kDeepest = 1000;
constexpr uint32_t kEmpty = std::numeric_limits<uint32_t>::max();

// A walk over a pickle's opcodes. Simulates the reader's stack and memo, tracking only the nesting
// depth of tuples and calls.
class Walk {
 public:
  explicit Walk(std::string_view pickle)
      : at_(pickle.data()), end_(at_ + pickle.size()), size_(pickle.size()) {}

  bool ToStop() {
    while (at_ < end_) {
      const char op = *at_++;
      if (op == '.') return Has(1);
      if (!Argument(op)) return false;
    }
    return false;
  }

 private:
  bool Skip(uint64_t count) {
    if (static_cast<uint64_t>(end_ - at_) < count) return false;
    at_ += count;
    return true;
  }
  bool Number(size_t bytes, uint64_t* value) {
    const char* const number = at_;
    *value = 0;
    if (!Skip(bytes)) return false;
    std::memcpy(value, number, bytes);  // little-endian
    return true;
  }
  bool Counted(size_t length_bytes) {
    uint64_t length;
    return Number(length_bytes, &length) && Skip(length) && Push(0);
  }
  bool Lines(int count) {
    for (; count > 0; --count) {
      const char* const line_end = std::find(at_, end_, '\n');
      if (line_end == end_) return false;
      at_ = line_end + 1;
    }
    return Push(0);
  }

  // Opcodes with an argument; see pickletools.py. A pickle with an opcode that is missing here and
  // below (PERSID, EXT1, INST, ...) is rejected.
  bool Argument(char op) {
    uint64_t index;
    switch (op) {
      case '\x80':  // PROTO
        return Skip(1);
      case '\x95':  // FRAME
        return Skip(8);
      case 'K':
        return Skip(1) && Push(0);
      case 'M':
        return Skip(2) && Push(0);
      case 'J':
        return Skip(4) && Push(0);
      case 'G':
        return Skip(8) && Push(0);
      case '\x8a':  // LONG1
      case '\x8c':  // SHORT_BINUNICODE
      case 'C':
      case 'U':
        return Counted(1);
      case '\x8b':  // LONG4
      case 'X':
      case 'B':
      case 'T':
        return Counted(4);
      case '\x8d':  // BINUNICODE8
      case '\x8e':  // BINBYTES8
      case '\x96':  // BYTEARRAY8
        return Counted(8);
      case 'c':
        return Lines(2);
      case 'q':
        return Number(1, &index) && Put(index);
      case 'r':
        return Number(4, &index) && Put(index);
      case 'h':
        return Number(1, &index) && Get(index);
      case 'j':
        return Number(4, &index) && Get(index);
      default:
        return Bare(op);
    }
  }

  bool Bare(char op) {
    switch (op) {
      case 'N':
      case '\x88':  // NEWTRUE
      case '\x89':  // NEWFALSE
      case ')':
      case ']':
      case '}':
      case '\x8f':  // EMPTY_SET
        // Depth 0, because lists, dicts and sets are not hashable, so hashing never descends into
        // them.
        return Push(0);
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case '\x94':  // MEMOIZE
        return Put(memoized_);
      // APPEND and BUILD pop their argument and modify the value below it. SETITEM does so with two
      // arguments, and the other opcodes with all values after a mark.
      case 'a':
      case 'b':
        return Has(2) && Drop(1);
      case 's':
        return Has(3) && Drop(2);
      case 'e':
      case 'u':
      case '\x90':  // ADDITEMS
        return Unmark() && Has(1);
      case '0':
        return AtMark() ? Unmark() : Drop(1);
      case '1':
        return Unmark();
      default:
        return Made(op);
    }
  }

  // Simulates opcodes that create a value from other values; its nesting depth is one more than
  // theirs.
  bool Made(char op) {
    switch (op) {
      case '\x85':  // TUPLE1
        return Join(1);
      case '\x86':  // TUPLE2
      case 'R':
      case '\x81':  // NEWOBJ
      case '\x93':  // STACK_GLOBAL
        return Join(2);
      case '\x87':  // TUPLE3
      case '\x92':  // NEWOBJ_EX
        return Join(3);
      case 't':
      case '\x91':  // FROZENSET
        return !marks_.empty() && JoinFrom(marks_.back(), true);
      default:
        return false;
    }
  }

  bool Push(uint32_t depth) {
    stack_.push_back(depth);
    return depth <= kDeepest;
  }
  // POP at a mark removes the mark, as in CPython.
  bool AtMark() const { return !marks_.empty() && marks_.back() == stack_.size(); }
  // True if the stack has `count` values above the last mark; an opcode cannot take values below
  // it.
  bool Has(size_t count) const {
    return stack_.size() - (marks_.empty() ? 0 : marks_.back()) >= count;
  }
  bool Drop(size_t count) {
    if (!Has(count)) return false;
    stack_.resize(stack_.size() - count);
    return true;
  }
  bool Unmark() {
    if (marks_.empty()) return false;
    stack_.resize(marks_.back());
    marks_.pop_back();
    return true;
  }
  bool Join(size_t count) { return Has(count) && JoinFrom(stack_.size() - count, false); }
  bool JoinFrom(size_t begin, bool marked) {
    uint32_t deepest = 0;
    for (const uint32_t depth : std::span(stack_).subspan(begin)) {
      deepest = std::max(deepest, depth);
    }
    stack_.resize(begin);
    if (marked) marks_.pop_back();
    return Push(deepest + 1);
  }

  bool Put(uint64_t index) {
    // A pickle of n bytes memoizes fewer than n values; a larger index would only make the
    // unpickler allocate memory.
    if (index >= size_ || !Has(1)) return false;
    if (index >= memo_.size()) memo_.resize(index + 1, kEmpty);
    if (memo_[index] == kEmpty) ++memoized_;
    memo_[index] = stack_.back();
    return true;
  }
  bool Get(uint64_t index) {
    return index < memo_.size() && memo_[index] != kEmpty && Push(memo_[index]);
  }

  const char* at_;
  const char* const end_;
  const size_t size_;
  std::vector<uint32_t> stack_, memo_;  // nesting depths; unused memo entries are kEmpty
  uint64_t memoized_ = 0;               // number of memo entries; MEMOIZE writes to this index
  std::vector<size_t> marks_;           // stack heights
};

}  // namespace

bool PickleIsSound(std::string_view pickle) { return Walk(pickle).ToStop(); }

}  // namespace hearth::formats
