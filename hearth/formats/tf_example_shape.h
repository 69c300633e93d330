// Layout of an example apart from its values. In most files all rows have the same layout, with the
// values at the same offsets.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::formats {

// The bytes of an example that are not values, for comparison with other examples. Not thread-safe.
class ExampleShape {
 public:
  // Location of a feature's values in an example. `column` is the caller's index for the feature's
  // column; values of kUnwanted are skipped.
  struct Run {
    static constexpr int kUnwanted = -1;
    size_t offset, size;
    int column;
  };

  // Stores the layout of `example`. `runs` must be in byte order and not overlap. Another example
  // matches if all other bytes, including tags and lengths, are equal.
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
  // Calls f(offset, count) for the bytes between the runs. Stops when f returns false, and then
  // returns false.
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
  std::string fixed_;  // bytes of an example without the values, so images are not stored
};

}  // namespace hearth::formats
