// The bytes of an example but for its values: files mostly repeat them from row to row, and then
// the values lie where they lay before.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::feed {

// Not thread-safe.
class ExampleShape {
 public:
  // Where values lie in an example: those of column `column` (an index of the caller's), or such
  // that nobody wants.
  struct Run {
    static constexpr int kUnwanted = -1;
    size_t offset, size;
    int column;
  };

  // `runs` are in the order of the bytes and do not overlap. All other bytes, tags and lengths
  // among them, must be the same in an example for it to match.
  void Learn(std::string_view example, std::vector<Run> runs) {
    example_.assign(example);
    runs_ = std::move(runs);
    fixed_.clear();
    size_t from = 0;
    for (const Run& run : runs_) {
      if (run.offset > from) fixed_.push_back({from, run.offset - from});
      from = run.offset + run.size;
    }
    if (example.size() > from) fixed_.push_back({from, example.size() - from});
    known_ = true;
  }
  void Forget() { known_ = false; }

  bool Matches(std::string_view example) const {
    if (!known_ || example.size() != example_.size()) return false;
    for (const Part& part : fixed_) {
      if (std::memcmp(example.data() + part.offset, example_.data() + part.offset, part.size) != 0)
        return false;
    }
    return true;
  }
  const std::vector<Run>& runs() const { return runs_; }

 private:
  struct Part {
    size_t offset, size;
  };

  bool known_ = false;
  std::string example_;
  std::vector<Run> runs_;
  std::vector<Part> fixed_;
};

}  // namespace hearth::feed
