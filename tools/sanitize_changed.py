#!/usr/bin/env python3
"""Runs address and undefined-behaviour sanitizers over the code that changed last, within a budget.

Runs the tests of the modules with the most changed lines, the smallest module first. Modules for
which no time is left are listed at the end. They are not failures, because they only show that the
machine is slow.
    tools/sanitize_changed.py --budget 360
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from git_changes import changed_lines  # noqa: E402

COMMITS = 50
MOST_MODULES = 4
# The engine's tests take ten minutes to compile, and the trainer's tests link the engine.
TOO_LARGE = ("caffe", "trainer")
# Modules that read other processes', hosts' and programs' bytes; run if few modules changed.
FOREIGN_BYTES = ("batch", "ring", "rendezvous", "formats")


def changed_modules(lines: Mapping[str, int]) -> Counter[str]:
    """Returns the number of changed lines by module. `lines`: the numbers by file."""
    modules: Counter[str] = Counter()
    for path, count in lines.items():
        folder, module, *rest = path.split("/")
        if folder == "hearth" and rest:
            modules[module] += count
    return modules


def choose(lines: Counter[str], modules: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns the modules to run and the changed modules left out, most changed lines first."""
    modules = set(modules)
    changed = [name for name, _ in lines.most_common() if name in modules]
    small = [name for name in changed if name not in TOO_LARGE]
    filled = [*small, *(name for name in FOREIGN_BYTES if name not in small)]
    chosen = filled[:MOST_MODULES]
    return chosen, [name for name in changed if name not in chosen]


def size(module: str) -> int:
    """Bytes of the module's sources, which predict compile times best."""
    return sum(file.stat().st_size for file in (ROOT / "hearth" / module).rglob("*.cc"))


def command(name: str) -> list[str]:
    return ["make", "-s", "asan", f"SANITIZE={name}"]


def run(words: list[str], seconds: float) -> int | None:
    """Returns the command's exit status, or None if it exceeded its time and was killed."""
    process = subprocess.Popen(words, cwd=ROOT, start_new_session=True)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            # ninja stops its compilers, which have separate process groups.
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def sanitize(
    names: list[str], budget_s: float, command: Callable[[str], list[str]] = command
) -> tuple[list[str], list[str], list[str]]:
    """Runs each module while the budget lasts; returns those passed, failed, and left out."""
    deadline = time.monotonic() + budget_s
    passed, failed, late = [], [], []
    for name in names:
        began = time.monotonic()
        status = run(command(name), deadline - began) if began < deadline else None
        (late if status is None else failed if status else passed).append(name)
        took = f"{time.monotonic() - began:.0f} s"
        print(f"sanitizers: {name}: {took}, status {status}", flush=True)
    return passed, failed, late


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, required=True, metavar="SECONDS")
    budget_s = parser.parse_args().budget
    lines = changed_lines("log", f"-{COMMITS}", "--format=", "--", "hearth/*.cc", "hearth/*.h")
    modules = [file.parent.name for file in (ROOT / "hearth").glob("*/CMakeLists.txt")]
    chosen, left_out = choose(changed_modules(lines), modules)
    passed, failed, late = sanitize(sorted(chosen, key=size), budget_s)
    print(f"sanitizers: passed: {', '.join(passed) or 'none'}")
    if late or left_out:
        names = ", ".join([*late, *left_out])
        print(f"sanitizers: left out by the budget of {budget_s:.0f} s: {names} (see `make asan`)")
    if failed:
        print(f"sanitizers: FAILED: {', '.join(failed)} (reports above)", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
