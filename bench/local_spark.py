"""A quiet Spark session with Hearth's settings for Arrow, for several benches."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any


def start_spark(
    name: str, memory: str, tasks: int = 1, more: Mapping[str, str] | None = None
) -> Any:
    """A session with `tasks` task slots; its JVM has `memory` ("2g").

    `more`: further settings.
    """
    from pyspark.sql import SparkSession

    from hearth.spark.session import ARROW_CONF

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).master(f"local[{tasks}]")
    conf = {
        **ARROW_CONF,
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        **(more or {}),
    }
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
