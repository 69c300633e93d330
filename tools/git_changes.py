"""Counts the lines that commits have changed, by file; renaming a file changes no lines."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def changed_lines(*command: str, root: Path = ROOT) -> Counter[str]:
    """Returns the number of added and deleted lines by today's path; empty without a repository.

    `command`: the arguments of `git log` or `git diff`, with the range and paths last.
    """
    name, *rest = command
    # The first commit of a shallow clone adds all files.
    words = ["git", "-c", "log.showRoot=false", name, "--find-renames", "--numstat", *rest]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True)
    return counted(done.stdout)


def counted(numstat: str) -> Counter[str]:
    """Returns the number of changed lines by today's path, from --numstat's lines, newest first."""
    lines: Counter[str] = Counter()
    today: dict[str, str] = {}  # today's path by earlier path
    for line in filter(None, numstat.splitlines()):
        added, deleted, path = line.split("\t")
        former, new = _paths(path)
        new = today.get(new, new)
        if former != new:
            today[former] = new
        if added.isdigit():  # "-" for a binary file
            lines[new] += int(added) + int(deleted)
    return +lines


def _paths(path: str) -> tuple[str, str]:
    """Returns both names of a renamed file, which git prints as `a/{b => c}/d` or `a => d`."""
    former = re.sub(r"\{(.*) => .*\}", r"\1", path).replace("//", "/")
    new = re.sub(r"\{.* => (.*)\}", r"\1", path).replace("//", "/")
    return former.partition(" => ")[0], new.partition(" => ")[2] or new
