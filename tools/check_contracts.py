#!/usr/bin/env python3
"""Checks that each class and struct in a header, also if nested, has a comment directly above it.

Prints a line for each type without a comment, and exits with 1 if there is any.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from sizes import tracked  # noqa: E402

# Matches the first line of a definition as clang-format writes it, but no forward declarations,
# variables or enums. Before the name: alignas, attributes and macros such as HEARTH_API.
TYPE = re.compile(
    r"^ *(?:typedef )?(?:class|struct|union)\s+"
    r"(?:(?:alignas|__attribute__)\(.*?\)\s+|\[\[.*?\]\]\s+|[A-Z][A-Z_]+\s+)*"
    r"(\w[\w:]*)(?:<[^;{}]*>)?(?:\s+final)?\s*(?::[^;{}]*)?\{",
    re.MULTILINE,
)
TEMPLATE = re.compile(r"^ *template\s*<[^;{}]*>\s*\Z", re.MULTILINE)


def uncommented_types(text: str) -> list[tuple[int, str]]:
    """(line, name) of each type of a header without a comment above."""
    found = []
    for declared in TYPE.finditer(text):
        above = TEMPLATE.sub("", text[: declared.start()]).splitlines()[-1:]
        if not above or not (above[0].lstrip().startswith("//") or above[0].endswith("*/")):
            found.append((text.count("\n", 0, declared.start()) + 1, declared[1]))
    return found


def problems(root: Path) -> list[str]:
    """Returns a line for each type without a comment in the headers of a checkout."""
    return [
        f"{name}:{line}: {type_name} needs a comment directly above: what it is, its owner, threads"
        for name in tracked(".h")
        for line, type_name in uncommented_types((root / name).read_text(encoding="utf-8"))
    ]


def main() -> int:
    found = problems(ROOT)
    print("\n".join(found) if found else "contracts: in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
