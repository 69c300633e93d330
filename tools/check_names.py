#!/usr/bin/env python3
"""Checks that names in anonymous namespaces are unique within a module that is compiled in unity
builds, and within its tests. Otherwise a call could resolve to another file's function.

Prints one line per name that two files define, and exits with 1 if there is any.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Folders for which cmake/HearthModules.cmake calls hearth_unity(), with their subfolders.
MODULES = [
    "hearth/base",
    "hearth/rendezvous",
    "hearth/formats",
    "hearth/batch",
    "hearth/ring",
    "hearth/dataset",
    "hearth/feed",
    "hearth/collective",
    "hearth/storage",
    "hearth/tensorboard",
    "hearth/caffe/proto",
    "hearth/caffe",
    "hearth/trainer",
    "apps",
    "python/bindings",
]
# Folders of a module that are compiled as separate programs or libraries.
APART = {"proto", "stand_in"}
# Lookup finds names of the caller's namespace first, so names of two namespaces do not clash.
NAMED = re.compile(r"^namespace ([\w:]+) \{$", re.MULTILINE)
ANONYMOUS = re.compile(r"\nnamespace \{\n(.*?)\n\}  // namespace\n", re.DOTALL)
# Python docstrings in raw strings, whose lines also start in the first column.
DOCSTRING = re.compile(r'R"\((.*?)\)"', re.DOTALL)
# Declarations in the first column: types, aliases, then functions and constants.
TYPE = re.compile(r"^(?:struct|class|enum class|enum) (\w+)", re.MULTILINE)
ALIAS = re.compile(r"^using (\w+) = ([^;]+);", re.MULTILINE)
VALUE = re.compile(
    r"^(?!template|namespace|using|TEST|struct|class|enum)\w[^(={;]*?(?<!::)\b(\w+)\s*[(={\[;]",
    re.MULTILINE,
)


def names(text: str) -> dict[tuple[str, str], str]:
    """Maps each name that a file's anonymous namespaces define, with its enclosing namespace, to an
    alias's type or "". Equal aliases do not clash."""
    found = {}
    for anonymous in ANONYMOUS.finditer(text):
        around = ["", *NAMED.findall(text, 0, anonymous.start())][-1]
        body = DOCSTRING.sub('""', anonymous[1])
        found |= {(around, name): "" for name in TYPE.findall(body) + VALUE.findall(body)}
        found |= {(around, name): stands_for for name, stands_for in ALIAS.findall(body)}
    return found


def clashes(root: Path = ROOT) -> list[str]:
    """One line per name that two files of a module define."""
    lines = []
    for module, of_tests in product(MODULES, (False, True)):
        where: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
        for path in sorted((root / module).rglob("*.cc")):
            is_test = re.search(r"_test(ing)?\.cc$", path.name) is not None
            if is_test == of_tests and APART.isdisjoint(path.relative_to(root / module).parts):
                for name, stands_for in names(path.read_text()).items():
                    where[name][str(path.relative_to(root))] = stands_for
        lines += [
            f"{name} is in the anonymous namespaces of {' and '.join(files)}: these files may be "
            "compiled as one, so give it two names"
            for (_, name), files in sorted(where.items())
            if len(files) > 1 and ("" in files.values() or len(set(files.values())) > 1)
        ]
    return lines


if __name__ == "__main__":
    found = clashes()
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))
