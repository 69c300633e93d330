"""Finds, with ldd, the shared libraries that compiled parts need and that other hosts may lack."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from hearth import native
from hearth.errors import HearthError

# Libraries of every Linux with glibc, as in the manylinux rules for wheels.
_EVERYWHERE = re.compile(
    r"(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libutil|libresolv|libnsl|libanl"
    r"|libgcc_s|libstdc\+\+)\.so"
)
# TensorFlow's library, which is already loaded in the process that loads the plug-in.
_OF_THE_LOADER = re.compile(r"libtensorflow")
_FOUND = re.compile(r"^\s*(\S+) => (.+?) \(0x[0-9a-f]+\)$")
_MISSING = re.compile(r"^\s*(\S+) => not found$")


def libraries_of(files: Iterable[Path]) -> dict[str, Path]:
    """Paths by name of the libraries that `files` need, directly or indirectly, except those that
    any Linux has.

    Raises:
        HearthError: a library is missing, or ldd is not installed.
    """
    paths = [str(file) for file in files]
    if not paths:
        return {}
    if shutil.which("ldd") is None:
        raise HearthError("hearth pack finds libraries by the program ldd, which is not in PATH")
    environment = {**os.environ, **native.environment(), "LC_ALL": "C"}
    done = subprocess.run(["ldd", *paths], capture_output=True, text=True, env=environment)
    found: dict[str, Path] = {}
    file = paths[0]
    for line in done.stdout.splitlines():
        if line.endswith(":") and not line.startswith("\t"):
            file = line[:-1]
        elif (missing := _MISSING.match(line)) and not _OF_THE_LOADER.match(missing[1]):
            raise HearthError(
                f"{file} needs {missing[1]}, which is not in this environment: run `hearth pack` "
                "where the program itself runs (`hearth device_query`)"
            )
        elif (known := _FOUND.match(line)) and not _EVERYWHERE.match(known[1]):
            found[known[1]] = Path(known[2])
    return found
