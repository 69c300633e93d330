"""Records a training in MLflow if the driver has imported it and a run is active."""

from __future__ import annotations

import logging
import posixpath
import queue
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

# A metric: seconds since 1970, step, name, value.
Point = tuple[float, int, str, float]
T = TypeVar("T")

# Limits of one MLflow request.
_METRICS, _PARAMS = 1000, 100
_LONGEST_PARAM = 500
_PERIOD_S = 1.0
_END_S, _MODEL_S = 30.0, 600.0
_FOREIGN = re.compile(r"[^\w\-. /]")


class MlflowRun:
    """Sends params and metrics to one run in a separate thread. Thread-safe.

    Logs the server's first error; errors do not end the training.
    """

    def __init__(self, mlflow: Any, run_id: str):
        self._client = mlflow.MlflowClient()
        self._entities = sys.modules.get("mlflow.entities") or mlflow.entities
        self._run_id = run_id
        self._queue: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()
        self._warned = False
        self._thread = threading.Thread(target=self._run, name="hearth-mlflow", daemon=True)
        self._thread.start()

    def params(self, values: Mapping[str, Any]) -> None:
        """Logs params; params that exist with other values are not changed."""
        for name, value in values.items():
            self._queue.put(("param", (_key(name), str(value)[:_LONGEST_PARAM])))

    def metrics(self, points: Iterable[Point]) -> None:
        """Logs values by step."""
        for at, step, name, value in points:
            self._queue.put(("metric", (_key(name), value, int(at * 1000), step)))

    def close(self) -> None:
        """Sends queued values; waits at most _END_S."""
        self._queue.put(None)
        _await(self._thread, _END_S, f"figures of run {self._run_id}")

    def _run(self) -> None:
        over = False
        while not over:
            items = [self._queue.get()]
            end = time.monotonic() + _PERIOD_S
            while items[-1] is not None and len(items) < _METRICS:
                try:
                    items.append(self._queue.get(timeout=max(0.0, end - time.monotonic())))
                except queue.Empty:
                    break
            over = items[-1] is None
            self._send([item for item in items if item is not None])

    def _send(self, items: list[tuple[str, Any]]) -> None:
        params = [values for kind, values in items if kind == "param"]
        for start in range(0, len(params), _PARAMS):
            some = [self._entities.Param(*values) for values in params[start : start + _PARAMS]]
            self._try(params=some)
        metrics = [self._entities.Metric(*values) for kind, values in items if kind == "metric"]
        if metrics:
            self._try(metrics=metrics)

    def _try(self, **logged: Any) -> None:
        try:
            self._client.log_batch(self._run_id, **logged)
        except Exception as error:
            # MLflow rejects the whole batch if the run has one of the params with another value.
            known = getattr(error, "error_code", "") == "INVALID_PARAMETER_VALUE"
            if known and len(params := logged.get("params", ())) > 1:
                for each in params:
                    self._try(params=[each])
            elif not self._warned:
                logger.warning(
                    "MLflow rejected %s of run %s; later values may be missing, too: %s",
                    " and ".join(logged), self._run_id, error,
                )  # fmt: skip
                self._warned = True


def active_run() -> MlflowRun | None:
    """This thread's active run, if any. Does not import MLflow."""
    return _of_active_run(MlflowRun)


def log_model(files: Callable[[], Mapping[str, bytes]]) -> None:
    """Logs a model to this thread's active run, if any, as artifacts in the folder `model`.

    `files` returns the artifacts' contents by name. Errors and timeouts are logged as warnings.
    """
    _of_active_run(partial(_upload, files))


def _upload(files: Callable[[], Mapping[str, bytes]], mlflow: Any, run_id: str) -> None:
    client, contents = mlflow.MlflowClient(), files()

    def upload() -> None:
        try:
            with TemporaryDirectory() as folder:
                for name, data in contents.items():
                    Path(folder, name).write_bytes(data)
                client.log_artifacts(run_id, folder, "model")
        except Exception as error:
            logger.warning("MLflow rejected the model of run %s: %s", run_id, error)

    thread = threading.Thread(target=upload, name="hearth-mlflow-model", daemon=True)
    thread.start()
    _await(thread, _MODEL_S, f"the model of run {run_id}")


def _await(thread: threading.Thread, limit_s: float, what: str) -> None:
    thread.join(limit_s)
    if thread.is_alive():
        logger.warning(
            "MLflow did not accept %s within %g s: check that its server responds",
            what, limit_s,
        )  # fmt: skip


def _of_active_run(act: Callable[[Any, str], T]) -> T | None:
    mlflow = sys.modules.get("mlflow")
    if mlflow is None:
        return None
    try:
        run = mlflow.active_run()
        return None if run is None else act(mlflow, run.info.run_id)
    except Exception as error:  # a partial import, or a different module "mlflow"
        logger.warning("nothing is logged to the active run of MLflow: %s", error)
        return None


def _key(name: str) -> str:
    """Converts a name to a valid MLflow name, which is a normalized relative path."""
    path = posixpath.normpath(_FOREIGN.sub("_", name[:250]).strip("/ ."))
    return path.strip("/ .") or "_"
