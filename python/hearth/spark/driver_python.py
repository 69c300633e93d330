"""Selects the executors' Python interpreter: the driver's if the master is local."""

from __future__ import annotations

import os
import sys
from typing import Any


def use_driver_python(session: Any) -> None:
    """With a local master, makes executors run this interpreter, unless the user set one.

    Spark's default is the first `python3` in PATH, which may lack the packages of the driver's
    virtual environment.
    """
    if not hasattr(session, "_jsc") or "PYSPARK_PYTHON" in os.environ:
        return
    context = session.sparkContext
    if sys.executable and context.master.startswith("local"):
        context.pythonExec = sys.executable


def interpreters() -> tuple[str, str]:
    """The interpreters of the executors and of the driver, for messages."""
    pyspark = sys.modules.get("pyspark")
    context = pyspark.SparkContext._active_spark_context if pyspark is not None else None
    return f" {context.pythonExec}" if context is not None else "", sys.executable
