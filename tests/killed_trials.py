"""Cross-validation in which a process of the first trial is killed in its second epoch."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.ml import Pipeline
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.feature import SQLTransformer
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder


class KillsOnce:
    """Kills the process or the executor of the first rank that calls it; later calls do nothing.

    Attributes:
        victim: "rank", "executor", or "none".
        mark: a file that exists once a process was killed.
    """

    def __init__(self, folder: Path, victim: str):
        self.victim, self.mark = victim, str(folder / f"killed-{victim}")

    def __call__(self) -> None:
        if self.victim == "none":
            return
        try:
            os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        pid = os.getpid()
        if self.victim == "executor":
            while b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(pid, signal.SIGKILL)
        threading.Event().wait(60)  # until the executor's end ends this process


def metrics_of(stage: Any, frame: Any, grid: tuple[Any, list[Any]]) -> list[float]:
    """Root mean squares of errors in the column `s` over two folds, for each value of a Param."""
    flat = SQLTransformer(statement="SELECT *, double(output[0]) AS prediction FROM __THIS__")
    return CrossValidator(
        estimator=Pipeline(stages=[stage, flat]),
        estimatorParamMaps=ParamGridBuilder().addGrid(*grid).build(),
        evaluator=RegressionEvaluator(labelCol="s"),
        numFolds=2,
        parallelism=2,
        seed=3,
    ).fit(frame).avgMetrics  # fmt: skip


# Executors cannot import this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
