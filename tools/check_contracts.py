#!/usr/bin/env python3
"""Each class and struct in a header, nested ones too, has its contract directly above: a comment.

Prints a line for each without one, and exits with 1 if there is any.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from sizes import tracked  # noqa: E402

# The first line of a definition, as clang-format leaves it; no forward declarations or variables.
TYPE = re.compile(
    r"(?:typedef )?(?:class|struct|union) (?:alignas\(\w+\) )?([\w:]+)(?: final)?(?: :[^;()]*)? \{"
)


def uncommented_types(text: str) -> list[tuple[int, str]]:
    """(line, name) of each type of a header without a comment above."""
    lines = [line.strip() for line in text.splitlines()]
    found = []
    for number, line in enumerate(lines):
        if not (declared := TYPE.match(line)):
            continue
        above = number - 1
        while above >= 0 and lines[above].startswith("template"):
            above -= 1
        if above < 0 or not (lines[above].startswith("//") or lines[above].endswith("*/")):
            found.append((number + 1, declared[1]))
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
