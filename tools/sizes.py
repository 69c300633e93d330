#!/usr/bin/env python3
"""Checks that files and functions are short: prints a line for each that exceeds its limit.

Finds the ends of C++ functions by the indentation, so run clang-format first.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_FILE_LINES = 400
MOST_FUNCTION_LINES = 60
# Blocks with braces that are not functions.
_NO_FUNCTION = re.compile(
    r"(namespace|class|struct|union|enum|extern|template <[^{]*> (class|struct))\b"
)
# The line before a declaration, which may itself span several lines.
_DECLARATION_END = re.compile(
    r"[;{}]$|^\s*$|^\s*(//|#)|[;{}]\s+//|^\s*(public|protected|private):$|^template <.*>$"
)


def tracked(*suffixes: str) -> list[str]:
    """Returns the files that git knows or would add, by suffix, relative to the checkout."""
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return sorted(f for f in set(listing) if f.endswith(suffixes) and (ROOT / f).exists())


def python_functions(text: str) -> Iterator[tuple[int, int]]:
    """(first line, number of lines) of each function."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


def cpp_functions(text: str) -> Iterator[tuple[int, int]]:
    """(first line, number of lines) of each function that is not inside another one."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        if not line.endswith("{") or line.lstrip().startswith(("//", "#")):
            number += 1
            continue
        first = number
        while first > 0 and not _DECLARATION_END.search(lines[first - 1]):
            first -= 1
        indent = len(lines[first]) - len(lines[first].lstrip())
        head = lines[first].strip()
        end = next(
            (i for i in range(number + 1, len(lines)) if re.match(rf" {{{indent}}}\}}", lines[i])),
            None,
        )
        if (
            end is None
            or _NO_FUNCTION.match(head)
            or "(" not in " ".join(lines[first : number + 1])
        ):
            number += 1
            continue
        yield first + 1, end - first + 1
        number = end + 1


def too_long() -> list[str]:
    """Returns a line for each file and each function over its limit."""
    found = []
    for name in tracked(".h", ".cc", ".py", ".scala", ".java"):
        text = (ROOT / name).read_text(encoding="utf-8")
        if (lines := text.count("\n")) > MOST_FILE_LINES:
            found.append(f"{name}: {lines} lines, at most {MOST_FILE_LINES}")
        if name.endswith((".scala", ".java")):
            continue
        functions = python_functions if name.endswith(".py") else cpp_functions
        found += [
            f"{name}:{first}: a function of {length} lines, at most {MOST_FUNCTION_LINES}"
            for first, length in functions(text)
            if length > MOST_FUNCTION_LINES
        ]
    return found


def main() -> int:
    problems = too_long()
    print("\n".join(problems) if problems else "sizes: in order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
