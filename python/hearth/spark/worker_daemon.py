"""Spark's daemon of Python workers, which imports common modules before it forks workers.

spark.python.daemon.module makes executors run `python -m hearth.spark.worker_daemon
pyspark.worker`. Otherwise each worker would import pandas and pyarrow at its first task, which
takes half a second. Imported objects are also excluded from Spark's garbage collection after each
task.
"""

from __future__ import annotations

import gc
import os
import runpy
import sys
from contextlib import suppress
from importlib import import_module

# What Spark's worker imports for DataFrames. These modules only start threads of allocators and
# BLAS, which restart after a fork.
_MODULES = ("pyarrow", "pandas", "pyspark.worker", "pyspark.sql.pandas.types")


def _reseed() -> None:
    """Reseeds numpy, so that workers draw different random numbers."""
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
