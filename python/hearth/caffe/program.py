"""Runs the program `hearth` in this interpreter, for nets with layers in Python.

    python -m hearth.caffe.program train --solver=solver.prototxt

`hearth train`, `test`, `time` and `extract_features`, and the tasks of a Spark job, start this
program for such nets.
"""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Runs the command that sys.argv names and returns its exit status."""
    # For Parquet sources, the commands start `python -m hearth.rows.file_reader`.
    os.environ.setdefault("HEARTH_PYTHON", sys.executable)
    from hearth.native import _caffe

    return _caffe.run_command_line(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
