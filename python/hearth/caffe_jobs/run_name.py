"""The name by which a training recognizes its own snapshots.

A training that its driver restarts keeps its name in memory. The driver itself may be restarted by
YARN in cluster mode, and runs its program from the beginning: then the same training must get the
same name.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_counts: Counter[str] = Counter()  # of trainings with the same job in this driver
_lock = threading.Lock()


@dataclass(frozen=True)
class RunName:
    """`attempt`: the application's, from 1. From 2 on the run may have snapshots already."""

    text: str
    attempt: int = 1

    def first_generation(self, max_restarts: int) -> int:
        """Greater than those of earlier attempts, each of which had up to `max_restarts` + 1."""
        return (self.attempt - 1) * (max_restarts + 1)


def run_name(spark: Any, job: Mapping[str, Any]) -> RunName:
    """The name of the next training with that job in this driver.

    In YARN's cluster mode it is derived from application, job, and how many trainings with the same
    job the program has started; otherwise it is random.
    """
    known = _application(spark)
    if known is None:
        return RunName(str(uuid.uuid4()))
    application, attempt = known
    # Each attempt runs in another container, which changes the paths of submitted files.
    text = json.dumps(job, sort_keys=True).replace(os.getcwd(), ".")
    with _lock:
        _counts[text] += 1
        count = _counts[text]
    name = uuid.uuid5(uuid.NAMESPACE_URL, f"{application}/{count}/{text}")
    return RunName(str(name), attempt)


def _application(spark: Any) -> tuple[str, int] | None:
    """Its id and attempt, if the cluster restarts a driver that has died."""
    if not hasattr(spark, "_jsc"):
        return None
    context = spark._jsc.sc()
    attempt = context.applicationAttemptId()
    if attempt.isEmpty() or not attempt.get().isdigit():
        return None
    return context.applicationId(), int(attempt.get())
