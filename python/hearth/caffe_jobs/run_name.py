"""By which name a training knows its own snapshots again.

A training that is started again by its driver keeps its name in memory. The driver itself may be
started again, by YARN in cluster mode, and runs its program from the beginning: then the same
training needs the same name.
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
    """`attempt`: of the application, from 1 on. From 2 on the run may have snapshots already."""

    text: str
    attempt: int = 1

    def first_generation(self, max_restarts: int) -> int:
        """Above those of all attempts before, each of which had up to `max_restarts` + 1."""
        return (self.attempt - 1) * (max_restarts + 1)


def run_name(spark: Any, job: Mapping[str, Any]) -> RunName:
    """The name of the next training with that job in this driver.

    Under YARN's cluster mode it follows from application, job, and how many trainings with the same
    job the program has begun; elsewhere it is random.
    """
    known = _application(spark)
    if known is None:
        return RunName(str(uuid.uuid4()))
    application, attempt = known
    # Each attempt has a container of its own, and with it another path of the submitted files.
    text = json.dumps(job, sort_keys=True).replace(os.getcwd(), ".")
    with _lock:
        _counts[text] += 1
        count = _counts[text]
    name = uuid.uuid5(uuid.NAMESPACE_URL, f"{application}/{count}/{text}")
    return RunName(str(name), attempt)


def _application(spark: Any) -> tuple[str, int] | None:
    """Its id and its attempt, where the cluster starts a driver again that has died."""
    if not hasattr(spark, "_jsc"):
        return None
    context = spark._jsc.sc()
    attempt = context.applicationAttemptId()
    if attempt.isEmpty() or not attempt.get().isdigit():
        return None
    return context.applicationId(), int(attempt.get())
