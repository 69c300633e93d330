"""Collects the files of `hearth pack` for nodes with Python, numpy and pyarrow, but no hearth.

python/          for PYTHONPATH: hearth, caffe, tensorflowonspark
python/hearth/native/libraries/         libraries of the bindings; engine/ those of the engine
bin/hearth       starts the program from wherever the archive was unpacked
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hearth
from hearth import native
from hearth.errors import HearthError
from hearth.tools.carried_libraries import libraries_of
from hearth.tools.pack_archive import Entry, files_below

_IMPORT_NAMES = ("hearth", "caffe", "com/yahoo/ml/caffe", "tensorflowonspark")
_NATIVE = "hearth/native"
_ENGINE = ("hearth", "_caffe.*.so")
# The library uses the node's torch if the version of that torch matches.
_DEVICES = ("libhearth_device_torch.so",)
_BINDINGS = ("_core.*.so", "libhearth_feed.so")
_PLUGINS = ("libhearth_tensorflow_collective.so", "libhearth_tensorflow_files.so")

_LAUNCHER = """#!/bin/sh
# Hearth's program, wherever the archive was unpacked; PYSPARK_PYTHON chooses the interpreter.
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
export PYTHONPATH="$root/python${PYTHONPATH:+:$PYTHONPATH}"
exec "${PYSPARK_PYTHON:-python3}" -m hearth.cli "$@"
"""


def package_entries(engine: bool) -> Iterator[Entry]:
    """The files of the archive; `engine`: whether to include Caffe's engine and its libraries.

    Raises:
        HearthError: a part was not built, or a library that it needs is missing.
    """
    yield from python_entries("python", engine)
    libraries = f"python/{_NATIVE}/libraries"
    small = libraries_of([*compiled(_BINDINGS), *compiled(_PLUGINS)])
    for name, path in sorted(small.items()):
        yield Entry(f"{libraries}/{name}", path.resolve(), library=True)
    if engine:
        for name, path in sorted(libraries_of(engine_parts()).items()):
            if name not in small:
                yield Entry(f"{libraries}/engine/{name}", path.resolve(), library=True)
    yield Entry.script("bin/hearth", _LAUNCHER)


def python_entries(folder: str, engine: bool) -> Iterator[Entry]:
    """Hearth's Python files and compiled parts, below `folder`, without other libraries."""
    root = Path(hearth.__file__).resolve().parents[1]
    for name in _IMPORT_NAMES:
        for entry in files_below(root / name, f"{folder}/{name}"):
            if not _is_compiled(entry):
                yield entry
    patterns = (*_BINDINGS, *_PLUGINS)
    if engine:
        patterns += (*_ENGINE, *_DEVICES)
    for path in compiled(patterns):
        yield Entry(f"{folder}/{_NATIVE}/{path.name}", path)


def engine_parts() -> list[Path]:
    """The program and pycaffe's module.

    Raises:
        HearthError: there is no engine.
    """
    parts = compiled(_ENGINE)
    if not parts:
        raise HearthError(
            f"there is no Caffe engine in {native.DIRECTORY}: install the wheel with its [caffe] "
            "extra, or omit the engine with --no-engine"
        )
    return parts


def compiled(patterns: tuple[str, ...] = (*_BINDINGS, *_PLUGINS)) -> list[Path]:
    """Compiled parts of this installation that match the patterns."""
    found = [path for pattern in patterns for path in sorted(native.DIRECTORY.glob(pattern))]
    return [path for path in found if path.is_file()]


def _is_compiled(entry: Entry) -> bool:
    """Whether an entry is a compiled part; a wheel installs those among the Python files."""
    folder, _, name = entry.name.rpartition("/")
    own = folder.endswith(_NATIVE) or f"{_NATIVE}/libraries" in folder
    return own and not name.endswith((".py", ".pyi", ".pyc"))
