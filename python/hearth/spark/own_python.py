"""The Python that executors run, and the driver's: with a local master they are one."""

from __future__ import annotations

import os
import sys
from typing import Any


def use_own_python(session: Any) -> None:
    """With a local master, has executors run this process's interpreter, if the user named none.

    Spark itself takes the first `python3` of the PATH, which need not have the packages of the
    virtual environment that the driver runs in.
    """
    if not hasattr(session, "_jsc") or "PYSPARK_PYTHON" in os.environ:
        return
    context = session.sparkContext
    if sys.executable and context.master.startswith("local"):
        context.pythonExec = sys.executable


def interpreters() -> tuple[str, str]:
    """The interpreters of the executors and of the driver, as messages call them."""
    pyspark = sys.modules.get("pyspark")
    context = pyspark.SparkContext._active_spark_context if pyspark is not None else None
    return f" {context.pythonExec}" if context is not None else "", sys.executable
