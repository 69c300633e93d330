#!/usr/bin/env python3
"""`make lint`: module order, sizes, words, contracts, clang-format, ruff, mypy, clang-tidy.

`--fix` formats in place. clang-tidy is slow, so a file that passed is not checked again until it,
a header or the configuration changes (stamps in build/tidy).
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import check_contracts  # noqa: E402
import check_modules  # noqa: E402
import check_names  # noqa: E402
import check_words  # noqa: E402
import git_changes  # noqa: E402
from sizes import too_long, tracked  # noqa: E402


def run(*command: str) -> bool:
    return subprocess.run(command, cwd=ROOT).returncode == 0


def write_commands(folder: Path) -> None:
    """Writes the build's compile commands for clang: one per file of a unity build, without g++'s
    precompiled headers, and with g++'s omp.h, which torch's headers include and Debian's clang-tidy
    lacks.
    """
    (folder / "include").mkdir(parents=True, exist_ok=True)
    asked = ["g++", "-print-file-name=include/omp.h"]
    found = subprocess.run(asked, capture_output=True, text=True)
    omp = Path(found.stdout.strip()).read_text()
    # clang does not support this attribute's argument, the function that frees the memory.
    omp = re.sub(r"__malloc__ \(\w+\)", "__malloc__", omp)
    (folder / "include" / "omp.h").write_text(omp)
    commands = []
    for entry in json.loads((ROOT / "build" / "compile_commands.json").read_text()):
        together = Path(entry["file"])
        files = [together]
        if together.parent.name == "Unity":
            files = re.findall(r'#include "(.+\.cc)"', together.read_text())
        commands += [
            {**entry, "file": str(f), "command": entry["command"].replace(str(together), str(f))}
            for f in files
        ]
    for entry in commands:
        command = re.sub(r" -include \S+/cmake_pch\.hxx", "", entry["command"])
        entry["command"] = f"{command} -isystem {folder / 'include'}"
    (folder / "compile_commands.json").write_text(json.dumps(commands))


def tidy(files: list[str], jobs: int) -> bool:
    """Runs clang-tidy over the files that changed since they last passed."""
    stamps = ROOT / "build" / "tidy"
    write_commands(stamps)
    ground = hashlib.sha256()
    for f in [".clang-tidy", *tracked(".h")]:
        ground.update((ROOT / f).read_bytes())

    def one(f: str) -> bool:
        digest = hashlib.sha256(ground.digest() + (ROOT / f).read_bytes()).hexdigest()
        stamp = stamps / f.replace("/", "_")
        if stamp.exists() and stamp.read_text() == digest:
            return True
        done = subprocess.run(
            ["clang-tidy", "-p", str(stamps), "--quiet", "--extra-arg=-Wno-everything", f],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        print(f"tidy: {f}{'' if done.returncode == 0 else ' FAILED'}", flush=True)
        if done.returncode != 0:
            print(done.stdout)
            return False
        stamp.write_text(digest)
        return True

    with ThreadPoolExecutor(jobs) as pool:
        return all(list(pool.map(one, files)))


def changed(most: int) -> list[str]:
    """The `most` source files with the most lines changed by the last commit and in the working
    tree, or, in a clone without history, in the working tree.
    """
    base = "HEAD~1" if run_quietly("git", "rev-parse", "-q", "--verify", "HEAD~1") else "HEAD"
    lines = git_changes.changed_lines("diff", base, "--", "*.cc")
    return [name for name, _ in lines.most_common() if (ROOT / name).exists()][:most]


def run_quietly(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true", help="format in place, check nothing else")
    parser.add_argument("--no-tidy", action="store_true", help="leave clang-tidy out (it is slow)")
    parser.add_argument(
        "--changed",
        type=int,
        metavar="N",
        help="clang-tidy alone, over the N files that the last commit changed most",
    )
    parser.add_argument("files", nargs="*", help="those that clang-tidy reads (default: all)")
    options = parser.parse_args()
    if options.changed is not None:
        return 0 if tidy(changed(options.changed), os.cpu_count() or 1) else 1
    sources = tracked(".h", ".cc")
    ruff = str(ROOT / ".venv/bin/ruff")
    if options.fix:
        fixed = run("clang-format", "-i", *sources) and run(ruff, "check", "--fix", ".")
        return 0 if fixed and run(ruff, "format", ".") else 1
    problems = check_modules.wrong_arrows(ROOT) + check_names.clashes(ROOT) + too_long()
    problems += check_words.problems(ROOT) + check_contracts.problems(ROOT)
    print("\n".join(problems) if problems else "modules, sizes, words and contracts: in order")
    good = not problems
    good &= run("clang-format", "--dry-run", "-Werror", *sources)
    good &= run(ruff, "check", ".") and run(ruff, "format", "--check", ".")
    good &= run("tools/typecheck.sh")
    if not options.no_tidy:
        with_commands = [f for f in options.files or sources if f.endswith(".cc")]
        good &= not with_commands or tidy(with_commands, os.cpu_count() or 1)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
