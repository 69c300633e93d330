"""Names of trainings, by which a training recognizes its own snapshots.

If the driver restarts the ranks, it still has the name in memory. In YARN's cluster mode the driver
itself may be restarted, and runs its program from the beginning; the same training must then get
the same name.
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

_counts: Counter[str] = Counter()  # number of trainings in this driver by job
_lock = threading.Lock()


@dataclass(frozen=True)
class RunName:
    """A run's name. `attempt`: the application's attempt, from 1; after the first, the run may have
    snapshots."""

    text: str
    attempt: int = 1

    def first_generation(self, max_restarts: int) -> int:
        """A generation number above those of all earlier attempts, each of which had up to
        `max_restarts` + 1."""
        return (self.attempt - 1) * (max_restarts + 1)


def run_name(spark: Any, job: Mapping[str, Any]) -> RunName:
    """The name of this driver's next training with that job.

    In YARN's cluster mode it is derived from the application, the job, and the number of trainings
    with the same job so far; otherwise it is random.
    """
    known = _application(spark)
    if known is None:
        return RunName(str(uuid.uuid4()))
    application, attempt = known
    # Each attempt runs in a different container, so the paths of submitted files differ.
    text = json.dumps(job, sort_keys=True).replace(os.getcwd(), ".")
    with _lock:
        _counts[text] += 1
        count = _counts[text]
    name = uuid.uuid5(uuid.NAMESPACE_URL, f"{application}/{count}/{text}")
    return RunName(str(name), attempt)


def _application(spark: Any) -> tuple[str, int] | None:
    """The application's id and attempt, if the cluster restarts failed drivers."""
    if not hasattr(spark, "_jsc"):
        return None
    context = spark._jsc.sc()
    attempt = context.applicationAttemptId()
    if attempt.isEmpty() or not attempt.get().isdigit():
        return None
    return context.applicationId(), int(attempt.get())
