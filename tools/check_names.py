#!/usr/bin/env python3
"""Within a room that is compiled several files at a time, a name of an anonymous namespace is one
file's alone, and so it is among its tests: of two functions, a call might take the other file's.

Prints one line per name that two files define, and exits with 1 if there is any.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# hearth_torch_unity() of cmake/HearthRooms.cmake is called for these.
ROOMS = ["hearth/caffe", "hearth/trainer", "apps"]
ANONYMOUS = re.compile(r"\nnamespace \{\n(.*?)\n\}  // namespace\n", re.DOTALL)
# What begins in the first column: types and aliases, then functions and constants.
TYPE = re.compile(r"^(?:struct|class|enum class|enum) (\w+)|^using (\w+) =", re.MULTILINE)
VALUE = re.compile(
    r"^(?!template|namespace|using|TEST|struct|class|enum)\w[^(={;]*?(?<!::)\b(\w+)\s*[(={\[;]",
    re.MULTILINE,
)


def names(text: str, aliases: bool = True) -> set[str]:
    """The names that a file's anonymous namespaces define. Two equal `aliases` do no harm."""
    bodies = "\n".join(ANONYMOUS.findall(text))
    types = {name or (alias if aliases else "") for name, alias in TYPE.findall(bodies)} - {""}
    return types | set(VALUE.findall(bodies))


def clashes(root: Path = ROOT) -> list[str]:
    """One line per name that two files of a room define."""
    lines = []
    for room, of_tests in product(ROOMS, (False, True)):
        where: dict[str, list[str]] = defaultdict(list)
        for path in sorted((root / room).rglob("*.cc")):
            is_test = re.search(r"_test(ing)?\.cc$", path.name) is not None
            if is_test == of_tests and "proto" not in path.parts:
                text = path.read_text()
                for name in names(text, aliases=not of_tests):
                    where[name].append(str(path.relative_to(root)))
        lines += [
            f"{name} is in the anonymous namespaces of {' and '.join(files)}: these files may be "
            "compiled as one, so give it two names"
            for name, files in sorted(where.items())
            if len(files) > 1
        ]
    return lines


if __name__ == "__main__":
    found = clashes()
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))
