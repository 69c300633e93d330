"""Collects the files for `hearth pack --environment`: this Python and its installed packages.

The archive is a relocatable Python prefix (bin, lib): Python finds its library relative to itself,
and bin/python, a script, sets the path of shared libraries.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib import metadata
from importlib.util import source_from_cache
from pathlib import Path

from hearth.errors import HearthError
from hearth.tools.carried_libraries import libraries_of
from hearth.tools.pack_archive import Entry, files_below
from hearth.tools.pack_package import compiled, engine_parts, python_entries

# Distributions that are not packed, because executors get Spark's Python packages from Spark, and
# install no packages.
EXCLUDED = ("pyspark", "pyspark-client", "py4j", "pip", "setuptools", "uv", "wheel")
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
# Parts of Python's library that are not packed, such as tests and GUI modules.
_UNUSED = ("test", "idlelib", "turtledemo", "tkinter", "ensurepip", "lib2to3", "__pycache__")
_OWN = "hearth-spark"

_LAUNCHER = """#!/bin/sh
# The environment's Python, wherever the archive was unpacked.
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
for folder in {folders}; do
  libraries="${{libraries:+$libraries:}}$root/$folder"
done
export LD_LIBRARY_PATH="$libraries${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
export PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}$root/{packages}"
exec "$root/bin/{python}" {arguments}"$@"
"""


@dataclass
class _Excluded:
    """Files of omitted distributions, and top-level folders that only these distributions use."""

    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)

    def __contains__(self, path: str) -> bool:
        return _source(path) in self.files or not self.folders.isdisjoint(_top_folders([path]))


def is_conda() -> bool:
    """Whether this is a conda environment, whose files contain their paths."""
    return (Path(sys.prefix) / "conda-meta").is_dir()


def pack_conda(target: Path, without: Sequence[str]) -> None:
    """Runs conda-pack, which rewrites the paths in a conda environment's files.

    Raises:
        HearthError: conda-pack is not installed, or failed.
    """
    program = shutil.which("conda-pack")
    if program is None:
        raise HearthError(
            f"{sys.prefix} is a conda environment, which needs conda-pack: "
            "conda install -c conda-forge conda-pack, then rerun this command"
        )
    if without:
        raise HearthError(
            "--without is not supported for conda environments: conda-pack packs all files"
        )
    done = subprocess.run([program, "-p", sys.prefix, "-o", str(target), "--force"])
    if done.returncode:
        raise HearthError(f"conda-pack ended with status {done.returncode}; see its output")


def environment_entries(engine: bool, without: Sequence[str]) -> Iterator[Entry]:
    """The files of the archive, without distributions whose names match one of `without`.

    Raises:
        HearthError: a package is outside of the environment, or a library is missing.
    """
    packages = f"lib/{_PYTHON}/site-packages"
    program = Path(sys.executable).resolve()
    excluded = _excluded((*EXCLUDED, *without))
    yield Entry(f"bin/{_PYTHON}", program)
    yield from _standard_library()
    yield from _installed(packages, excluded)
    ours = [*compiled(), *(engine_parts() if engine else [])]
    dynamic = sorted(Path(sysconfig.get_config_var("DESTSHARED")).glob("*.so"))
    folders = {"lib": None}
    for name, path in libraries_of([program, *dynamic, *ours]).items():
        location = _archive_path(path)
        if location is None or location.parent == Path("lib") or os.path.normpath(path) in excluded:
            yield Entry(f"lib/{name}", path.resolve())
        else:
            folders[str(location.parent)] = None
    yield from python_entries(packages, engine)
    words = {"folders": " ".join(folders), "packages": packages, "python": _PYTHON}
    yield Entry.script("bin/python", _LAUNCHER.format(**words, arguments=""))
    yield Entry.script("bin/hearth", _LAUNCHER.format(**words, arguments="-m hearth.cli "))


def distribution_sizes() -> list[tuple[str, int]]:
    """(name, bytes) of installed distributions, largest first."""
    found = {}
    for known in metadata.distributions():
        files = [Path(str(file.locate())) for file in known.files or []]
        found[known.name] = sum(file.stat().st_size for file in files if file.is_file())
    return sorted(found.items(), key=lambda item: -item[1])


def _standard_library() -> Iterator[Entry]:
    root = Path(sysconfig.get_path("stdlib"))
    skipped = (*_UNUSED, "site-packages", "dist-packages")
    for path in sorted(root.iterdir()):
        name = f"lib/{_PYTHON}/{path.name}"
        if path.name in skipped or path.name.startswith("config-"):
            continue
        if path.is_dir():
            yield from files_below(path, name, caches=True)
        else:
            yield Entry(name, path)


def _installed(folder: str, excluded: _Excluded) -> Iterator[Entry]:
    """All files of the environment's package folders, except hearth and omitted ones."""
    for root in _folders_of_packages():
        _refuse_links(root)
        for entry in files_below(root, folder, caches=True):
            if str(entry.path) not in excluded and not entry.name.endswith(".pth"):
                yield entry


def _source(path: str) -> str:
    """The source file of a compiled Python file, because some installers record only source
    files."""
    try:
        return source_from_cache(path)
    except ValueError:  # not in a __pycache__
        return path


def _folders_of_packages() -> list[Path]:
    return list(dict.fromkeys(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")))


def _excluded(without: Sequence[str]) -> _Excluded:
    """The distributions whose names match, and hearth, which is packed separately."""
    excluded, kept = _Excluded(), set()
    for known in metadata.distributions(path=list(map(str, _folders_of_packages()))):
        name = re.sub(r"[-_.]+", "-", known.name).lower()
        files = {os.path.normpath(str(file.locate())) for file in known.files or []}
        if name == _OWN or any(fnmatch(name, pattern.lower()) for pattern in without):
            excluded.files |= files
        else:
            kept |= files
    excluded.folders = _top_folders(excluded.files) - _top_folders(kept)
    return excluded


def _top_folders(paths: Iterable[str]) -> set[str]:
    """The top-level package folders, directly below site-packages, of these files."""
    found = set()
    roots = [f"{root}/" for root in _folders_of_packages()]
    for path in paths:
        for root in filter(path.startswith, roots):
            name, inside, _ = path.removeprefix(root).partition("/")
            if inside and name != "__pycache__":
                found.add(root + name)
    return found


def _refuse_links(root: Path) -> None:
    """Raises HearthError if .pth files link to packages in other folders, which would be
    missing."""
    import hearth

    own = Path(hearth.__file__).resolve().parents[1]
    for file in sorted(root.glob("*.pth")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            linked = root / line.strip()
            if not line.strip() or line.startswith(("#", "import")) or linked.resolve() == own:
                continue
            if linked.is_dir() and root.resolve() not in linked.resolve().parents:
                raise HearthError(
                    f"{file.name} in {root} links to packages in {linked}, which cannot be packed: "
                    "install them as wheels"
                )


def _archive_path(path: Path) -> Path | None:
    """A file's path relative to the archive's root; None for files outside of this environment."""
    try:
        inside = Path(os.path.normpath(path)).relative_to(sys.prefix)
    except ValueError:
        return None
    return inside
