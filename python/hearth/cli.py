"""Runs the programs `hearth`, `caffe` and Caffe's tools, by executing the native program.

`caffe` is another name of `hearth`; a tool such as `convert_imageset` runs the `hearth` command of
that name. pyproject.toml lists the tools. Some commands (`hearth pack`) and CaffeOnSpark's tools
(`hearth Vocab`) need neither the native program nor torch.
"""

from __future__ import annotations

import os
import runpy
import sys
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from hearth import __version__, native
from hearth.caffeonspark import tools

_WITHOUT_PROGRAM = {
    "bench-collective": "hearth.cluster.driver.bench_collective",
    "doctor": "hearth.doctor.__main__",
    "pack": "hearth.tools.pack",
    "build-device": "hearth.tools.build_device",
    "parse_log": "hearth.tools.parse_log",
    "plot": "hearth.tools.plot",
    "report": "hearth.tools.report",
    "timeline": "hearth.tools.timeline",
}
_PROGRAMS = ("hearth", "caffe", "cli")  # "cli": run by `python -m hearth.cli`


def main() -> NoReturn:
    """Replaces this process by the native program, with the same arguments."""
    name = Path(sys.argv[0]).stem
    command = [] if name in _PROGRAMS else [name]
    if not command and (tool := _WITHOUT_PROGRAM.get(*sys.argv[1:2] or [""])):
        sys.exit(import_module(tool).main(sys.argv[2:]))
    if not command and sys.argv[1:] in (["--version"], ["-version"]):
        print(f"hearth {__version__}")
        sys.exit(0)
    if not command and sys.argv[1:2] and sys.argv[1] in tools.NAMES:
        del sys.argv[0]
        runpy.run_module(f"hearth.caffeonspark.tools.{sys.argv[0]}", run_name="__main__")
    try:
        program = str(native.program())
    except (FileNotFoundError, ImportError) as error:
        sys.exit(f"hearth: {error}; without it there are: {', '.join(sorted(_WITHOUT_PROGRAM))}")
    # The native program runs `-m hearth.rows.file_reader` with this Python for Parquet sources.
    environment = {"HEARTH_PYTHON": sys.executable, **native.environment()}
    os.execve(program, [program, *command, *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
