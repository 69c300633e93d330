"""Spark's daemon of Python workers, which imports what its workers need before it forks them.

An executor has one, by spark.python.daemon.module: `python -m hearth.spark.worker_daemon
pyspark.worker`. Else each worker would import pandas and pyarrow itself, for half a second, at its
first task. What was imported is also left out when Spark collects garbage after each task.
"""

from __future__ import annotations

import gc
import runpy
from contextlib import suppress
from importlib import import_module

# What Spark's worker imports for DataFrames. None of it has threads of its own by then that a fork
# would miss: pyarrow's start with the first file or computation.
_MODULES = ("pyarrow", "pandas", "pyspark.worker", "pyspark.sql.pandas.types")


def main() -> None:
    """Serves until Spark closes its standard input."""
    for name in _MODULES:
        with suppress(ImportError):  # the worker says what it lacks
            import_module(name)
    gc.collect()
    gc.freeze()
    runpy.run_module("pyspark.daemon", run_name="__main__")


if __name__ == "__main__":
    main()
