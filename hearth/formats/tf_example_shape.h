// The bytes of an example apart from its values: most files repeat them from row to row, so that
// the values are at the same offsets.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::formats {

// Not thread-safe.
class ExampleShape {
 public:
  // Where values lie in an example: those of column `column` (an index of the caller's), or values
  // that nobody wants.
  struct Run {
    static constexpr int kUnwanted = -1;
    size_t offset, size;
    int column;
  };

  // `runs` are in the order of the bytes and do not overlap. All other bytes, tags and lengths
  // among them, must be the same in an example for it to match.
  void Learn(std::string_view example, std::vector<Run> runs) {
    runs_ = std::move(runs);
    size_ = example.size();
    fixed_.clear();
    ForEachFixed([&](size_t from, size_t count) {
      fixed_.append(example, from, count);
      return true;
    });
    known_ = true;
  }
  void Forget() { known_ = false; }

  bool Matches(std::string_view example) const {
    if (!known_ || example.size() != size_) return false;
    const char* fixed = fixed_.data();
    return ForEachFixed([&](size_t from, size_t count) {
      const char* const before = std::exchange(fixed, fixed + count);
      return std::memcmp(example.data() + from, before, count) == 0;
    });
  }
  const std::vector<Run>& runs() const { return runs_; }

 private:
  // f(offset, count) for the bytes between the runs, while it returns true; whether it always did.
  template <typename Function>
  bool ForEachFixed(Function f) const {
    size_t from = 0;
    for (const Run& run : runs_) {
      if (!f(from, run.offset - from)) return false;
      from = run.offset + run.size;
    }
    return f(from, size_ - from);
  }

  bool known_ = false;
  size_t size_ = 0;
  std::vector<Run> runs_;
  std::string fixed_;  // without the values: a picture is not kept
};

}  // namespace hearth::formats
