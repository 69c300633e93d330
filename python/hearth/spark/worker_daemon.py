"""Spark's daemon of Python workers, with common modules imported before it forks.

An executor runs one, by spark.python.daemon.module: `python -m hearth.spark.worker_daemon
pyspark.worker`. Otherwise each worker would import pandas and pyarrow, for half a second, at its
first task. Imported objects are also excluded from Spark's garbage collection after each task.
"""

from __future__ import annotations

import gc
import os
import runpy
import sys
from contextlib import suppress
from importlib import import_module

# Imports of Spark's worker for DataFrames. They only start threads of allocators and BLAS, which
# are restarted after a fork.
_MODULES = ("pyarrow", "pandas", "pyspark.worker", "pyspark.sql.pandas.types")


def _reseed() -> None:
    """Reseeds numpy, so that no two workers draw the same random numbers."""
    if (random := sys.modules.get("numpy.random")) is not None:
        random.seed()


def main() -> None:
    """Serves until Spark closes its standard input."""
    for name in _MODULES:
        with suppress(Exception):  # the worker reports missing modules itself
            import_module(name)
    os.register_at_fork(after_in_child=_reseed)
    gc.collect()
    gc.freeze()
    runpy.run_module("pyspark.daemon", run_name="__main__")


if __name__ == "__main__":
    main()
