"""tools/check_contracts.py reports header types without a comment; the tree has none."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_contracts  # noqa: E402

HEADER = """// Rings.
#pragma once

namespace hearth::ring {

class RingReader;
struct RingEntry* Find(int key);

struct RingEntry {
  int size;
};

// Reads.
template <typename T>
class RingReader final : public Reader {
 public:
  // Where it is.
  struct Position {
    int byte;
  };
  class Waiter;

 private:
  int size_;  // of the ring
  struct State {
    int length;
  };
  struct Position old_ {
  };
};

/* Of C. */
typedef struct hearth_ring {
  int size;
} hearth_ring;

template <typename T>
struct Loaded : Base<T> {
};
"""


def test_types_without_a_comment_directly_above_are_named():
    assert check_contracts.uncommented_types(HEADER) == [
        (9, "RingEntry"),
        (25, "State"),
        (38, "Loaded"),
    ]


CORNERS = """// Corners.
namespace hearth::ring {

enum class Kind { kRow, kEnd };

// A template over several lines.
template <typename Row,
          typename Compare = std::less<Row>>
class Sorted {
  struct Nested {
    int depth;
  };
};

template <>
struct Sorted<int, void> {
};

class HEARTH_API Exported : public Base,
                            private Other {
};

struct [[nodiscard]] Result final {
};

struct __attribute__((packed)) Header {
};

// Aligned.
struct alignas(64) Line {
};

class Forward;
struct Options MakeOptions(int ranks) {
  return {};
}
"""


def test_templates_nested_types_macros_attributes_and_enums():
    assert check_contracts.uncommented_types(CORNERS) == [
        (10, "Nested"),
        (16, "Sorted"),
        (19, "Exported"),
        (23, "Result"),
        (26, "Header"),
    ]


def test_each_type_of_the_tree_has_a_contract():
    assert check_contracts.problems(ROOT) == []
