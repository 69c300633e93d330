"""Spark's daemon of Python workers, which imports what its workers need before it forks them.

An executor has one, by spark.python.daemon.module: `python -m hearth.spark.worker_daemon
pyspark.worker`. Else each worker would import pandas and pyarrow itself, for half a second, at its
first task. What was imported is also left out when Spark collects garbage after each task.
"""

from __future__ import annotations

import gc
import os
import runpy
import sys
from contextlib import suppress
from importlib import import_module

# What Spark's worker imports for DataFrames. The threads that these have begun by then are those of
# their allocators and of BLAS, which begin them anew after a fork.
_MODULES = ("pyarrow", "pandas", "pyspark.worker", "pyspark.sql.pandas.types")


def _draw_anew() -> None:
    """As where a worker imports numpy itself, no two draw the same random numbers."""
    if (random := sys.modules.get("numpy.random")) is not None:
        random.seed()


def main() -> None:
    """Serves until Spark closes its standard input."""
    for name in _MODULES:
        with suppress(Exception):  # of what a worker needs it says itself what is wrong
            import_module(name)
    os.register_at_fork(after_in_child=_draw_anew)
    gc.collect()
    gc.freeze()
    runpy.run_module("pyspark.daemon", run_name="__main__")


if __name__ == "__main__":
    main()
