#!/usr/bin/env python3
"""Makes the wheel for Python 3.12 and newer: replaces the native modules of another wheel.

abi3_wheel.py dist/hearth_spark-...-cp311-cp311-....whl build-abi3/native
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_TAGS = ["--remove", "--python-tag", "cp312", "--abi-tag", "abi3"]


def run(*arguments: str) -> str:
    """Output of a command of the package `wheel`."""
    command = [sys.executable, "-m", "wheel", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main(wheel: Path, modules: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        run("unpack", "--dest", scratch, str(wheel))
        (root,) = Path(scratch).iterdir()
        native = root / "hearth" / "native"
        for old in native.glob("_c*.cpython-*.so"):
            old.unlink()
        for module in ("_core.abi3.so", "_caffe.abi3.so"):
            shutil.copy2(modules / module, native)
        packed = Path(scratch, "packed")
        packed.mkdir()
        run("pack", "--dest-dir", str(packed), str(root))
        (made,) = packed.iterdir()
        made = made.with_name(run("tags", *_TAGS, str(made)).splitlines()[-1])
        print(shutil.copy2(made, wheel.parent))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
