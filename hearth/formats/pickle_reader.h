// Reads plain data in Python's pickle format: numbers, text, bytes, lists, tuples, dicts. Rejects
// pickles with classes or calls, so that no pickle can run code. Format: the comments of CPython's
// Lib/pickletools.py, protocols 2 to 5.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace hearth::formats {

// Reads one pickle; not thread-safe. The Builder creates the values and returns a Value as a handle
// to each. This class passes each Value to a container, returns it as the result, or drops it. The
// Builder has these functions:
//   Value None(), Bool(bool), Int(int64_t), Float(double), Text(string_view), Bytes(string_view)
//   Value List(span<Value>), Tuple(span<Value>), Dict()
//   bool Extend(Value list, span<Value>), SetItems(Value dict, span<Value> keys_and_values)
//   Value Again(Value)   another handle to the same value
//   bool Failed(Value)   true if the value could not be made
//   void Drop(Value)
template <typename Builder>
class PickleReader {
 public:
  using Value = typename Builder::Value;

  PickleReader(std::string_view pickle, Builder* builder)
      : at_(pickle.data()), end_(at_ + pickle.size()), builder_(*builder) {}
  PickleReader(const PickleReader&) = delete;
  ~PickleReader() {
    for (const Value& value : stack_) builder_.Drop(value);
    for (const Value& value : memo_) builder_.Drop(value);
  }

  // Reads the pickle and returns its value; nullopt if it is damaged or not plain data.
  std::optional<Value> Read() {
    while (at_ < end_) {
      const char op = *at_++;
      if (op == kStop) return Result();
      if (!Number(op) && !Run(op)) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  enum Op : char {
    kMark = '(',
    kStop = '.',
    kBinFloat = 'G',
    kBinInt = 'J',
    kBinInt1 = 'K',
    kBinInt2 = 'M',
    kNone = 'N',
    kBinUnicode = 'X',
    kBinBytes = 'B',
    kShortBinBytes = 'C',
    kEmptyList = ']',
    kAppend = 'a',
    kAppends = 'e',
    kEmptyTuple = ')',
    kTuple = 't',
    kEmptyDict = '}',
    kSetItem = 's',
    kSetItems = 'u',
    kBinPut = 'q',
    kLongBinPut = 'r',
    kBinGet = 'h',
    kLongBinGet = 'j',
    kProto = '\x80',
    kTuple1 = '\x85',
    kTuple2 = '\x86',
    kTuple3 = '\x87',
    kTrue = '\x88',
    kFalse = '\x89',
    kLong1 = '\x8a',
    kShortBinUnicode = '\x8c',
    kBinBytes8 = '\x8e',
    kMemoize = '\x94',
    kFrame = '\x95',
  };

  bool Has(uint64_t count) const { return static_cast<uint64_t>(end_ - at_) >= count; }

  // Reads an unsigned little-endian integer; the caller has checked its bounds.
  template <typename T>
  T Take() {
    T value;
    std::memcpy(&value, at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }
  template <typename T>
  std::optional<uint64_t> Unsigned() {
    if (!Has(sizeof(T))) return std::nullopt;
    return Take<T>();
  }
  template <typename Length>
  std::optional<std::string_view> Bytes() {
    const auto length = Unsigned<Length>();
    if (!length || !Has(*length)) return std::nullopt;
    const std::string_view bytes(at_, *length);
    at_ += *length;
    return bytes;
  }

  bool Push(const Value& value) {
    if (builder_.Failed(value)) return false;
    stack_.push_back(value);
    return true;
  }

  // Pushes the number with opcode `op`; false for another opcode or a truncated number.
  bool Number(char op) {
    if (op == kBinFloat && Has(8)) {
      return Push(builder_.Float(std::bit_cast<double>(__builtin_bswap64(Take<uint64_t>()))));
    }
    if (op == kBinInt1 && Has(1)) return Push(builder_.Int(Take<uint8_t>()));
    if (op == kBinInt2 && Has(2)) return Push(builder_.Int(Take<uint16_t>()));
    if (op == kBinInt && Has(4)) return Push(builder_.Int(Take<int32_t>()));
    return false;
  }

  bool Run(char op) {
    switch (op) {
      case kProto:
        return Unsigned<uint8_t>().has_value();
      case kFrame:  // the frame's content follows
        return Unsigned<uint64_t>().has_value();
      case kMark:
        marks_.push_back(stack_.size());
        return true;
      case kNone:
        return Push(builder_.None());
      case kTrue:
      case kFalse:
        return Push(builder_.Bool(op == kTrue));
      case kLong1:
        return Long();
      case kShortBinUnicode:
        return PushText(Bytes<uint8_t>());
      case kBinUnicode:
        return PushText(Bytes<uint32_t>());
      case kShortBinBytes:
        return PushBytes(Bytes<uint8_t>());
      case kBinBytes:
        return PushBytes(Bytes<uint32_t>());
      case kBinBytes8:
        return PushBytes(Bytes<uint64_t>());
      case kMemoize:
        return Remember(memo_.size());
      case kBinPut:
        return Remember(Unsigned<uint8_t>());
      case kLongBinPut:
        return Remember(Unsigned<uint32_t>());
      case kBinGet:
        return Recall(Unsigned<uint8_t>());
      case kLongBinGet:
        return Recall(Unsigned<uint32_t>());
      default:
        return Container(op);
    }
  }

  bool Container(char op) {
    switch (op) {
      case kEmptyList:
        return List();
      case kAppend:
        return stack_.size() >= 2 && Extend(stack_.size() - 1);
      case kAppends:
        return Unmark() && Extend(mark_);
      case kEmptyTuple:
        return Tuple(stack_.size());
      case kTuple1:
      case kTuple2:
      case kTuple3: {
        const size_t count = op == kTuple1 ? 1 : op == kTuple2 ? 2 : 3;
        return stack_.size() >= Floor() + count && Tuple(stack_.size() - count);
      }
      case kTuple:
        return Unmark() && Tuple(mark_);
      case kEmptyDict:
        return Push(builder_.Dict());
      case kSetItem:
        return stack_.size() >= 3 && SetItems(stack_.size() - 2);
      case kSetItems:
        return Unmark() && SetItems(mark_);
      default:
        return false;
    }
  }

  // Stack height at the innermost mark; values below it belong to outer containers.
  size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }

  // Pops the innermost mark into mark_.
  bool Unmark() {
    if (marks_.empty() || marks_.back() > stack_.size()) return false;
    mark_ = marks_.back();
    marks_.pop_back();
    return true;
  }

  std::span<Value> From(size_t begin) { return std::span(stack_).subspan(begin); }

  // Reads a list. A list that contains only numbers, the most frequent kind of row, is created in
  // one call.
  bool List() {
    const char* const start = at_;
    const bool memoized = at_ < end_ && *at_ == kMemoize;
    if (memoized) ++at_;
    if (at_ == end_ || *at_ != kMark) {
      at_ = start;
      return Push(builder_.List({}));
    }
    const size_t begin = stack_.size();
    char op = *at_++;
    while (at_ < end_) {
      op = *at_++;
      if (!Number(op)) break;
    }
    if (op == kAppends) {
      return Replace(begin, builder_.List(From(begin))) && (!memoized || Remember(memo_.size()));
    }
    // The list has other values, too: drops the numbers and reads the list again, value by value.
    for (const Value& value : From(begin)) builder_.Drop(value);
    stack_.resize(begin);
    at_ = start;
    return Push(builder_.List({}));
  }

  // Replaces the values from `begin` on by `value`, which now owns them.
  bool Replace(size_t begin, const Value& value) {
    stack_.resize(begin);
    return Push(value);
  }

  bool Tuple(size_t begin) { return Replace(begin, builder_.Tuple(From(begin))); }

  bool Extend(size_t begin) {
    if (begin == 0) return false;
    const bool extended = builder_.Extend(stack_[begin - 1], From(begin));
    stack_.resize(begin);
    return extended;
  }

  bool SetItems(size_t begin) {
    if (begin == 0 || (stack_.size() - begin) % 2 != 0) return false;
    const bool set = builder_.SetItems(stack_[begin - 1], From(begin));
    stack_.resize(begin);
    return set;
  }

  // Reads an integer in two's complement, little-endian, with the minimal number of bytes.
  bool Long() {
    const auto bytes = Bytes<uint8_t>();
    if (!bytes || bytes->size() > sizeof(int64_t)) return false;
    uint64_t value = 0;
    for (size_t i = 0; i < bytes->size(); ++i) {
      value |= uint64_t{static_cast<uint8_t>((*bytes)[i])} << (8 * i);
    }
    const int unused = static_cast<int>(64 - 8 * bytes->size());
    const bool some = !bytes->empty();
    return Push(builder_.Int(some ? static_cast<int64_t>(value << unused) >> unused : 0));
  }

  bool PushText(std::optional<std::string_view> text) { return text && Push(builder_.Text(*text)); }
  bool PushBytes(std::optional<std::string_view> bytes) {
    return bytes && Push(builder_.Bytes(*bytes));
  }

  // Python numbers memo entries consecutively from 0, so other indices are rejected.
  bool Remember(std::optional<uint64_t> index) {
    if (!index || *index != memo_.size() || stack_.empty()) return false;
    memo_.push_back(builder_.Again(stack_.back()));
    return true;
  }
  bool Recall(std::optional<uint64_t> index) {
    return index && *index < memo_.size() && Push(builder_.Again(memo_[*index]));
  }

  std::optional<Value> Result() {
    if (stack_.size() != 1 || !marks_.empty()) return std::nullopt;
    const Value value = stack_.back();
    stack_.clear();
    return value;
  }

  const char* at_;
  const char* const end_;
  Builder& builder_;
  std::vector<Value> stack_, memo_;
  std::vector<size_t> marks_;  // stack heights
  size_t mark_ = 0;
};

}  // namespace hearth::formats
