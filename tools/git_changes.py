"""Lines that commits have changed, by file; a file that was only renamed has none."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def changed_lines(*command: str, root: Path = ROOT) -> Counter[str]:
    """Returns the number of added and deleted lines by today's path, of `git` with `command`: a log
    or a diff, with its range and paths last. Without a repository there are none.
    """
    name, *rest = command
    # The first commit of a shallow clone adds all files.
    words = ["git", "-c", "log.showRoot=false", name, "--find-renames", "--numstat", *rest]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True)
    return counted(done.stdout)


def counted(numstat: str) -> Counter[str]:
    """Returns the number of changed lines by path, from git's --numstat."""
    lines: Counter[str] = Counter()
    for line in filter(None, numstat.splitlines()):
        added, deleted, path = line.split("\t")
        if added.isdigit():  # not of a binary file
            lines[_new_path(path)] += int(added) + int(deleted)
    return +lines


def _new_path(path: str) -> str:
    """Returns the new name of a renamed file, which git prints as `a/{b => c}/d` or `a => d`."""
    path = re.sub(r"\{.* => (.*)\}", r"\1", path).replace("//", "/")
    return path.partition(" => ")[2] or path
