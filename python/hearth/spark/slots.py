"""Counts Spark's task slots for a job's ranks or nodes, and waits for missing slots."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING

from hearth.errors import HearthError
from hearth.spark.dynamic_allocation import ask_for_slots, is_on, most_executors
from hearth.spark.profiles import described, slots_for, task_cpus
from hearth.spark.time_setting import time_setting_s

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
    from pyspark.sql import SparkSession

# How long Spark may take to start or replace executors. Standalone Workers need seconds, or a
# minute on a busy machine. Resource managers that start containers need minutes. A machine that is
# lost for good is never replaced. Spark does not report which is the case.
WAIT_SETTING = "spark.hearth.executorWait"
_WAIT = "300s"
# How long a job with a variable number of tasks waits for its minimum. Preemption removes executors
# for as long as other jobs need them. (Spark's own jobs wait without limit.)
LEAST_WAIT_SETTING = "spark.hearth.minWorkersWait"
_LEAST_WAIT = "1h"

# Spark's Python API has no event for a new executor, so poll.
_LOOK_S = 0.1
_REPORT_S = 10.0


class SlotWait:
    """Waits until all tasks of a job can run at the same time. Not thread-safe.

    Attributes:
        by_demand: whether to skip the wait with a profile and dynamic allocation, because Spark
            then starts executors for the tasks of the running job.
    """

    def __init__(
        self,
        session: SparkSession,
        tasks: int,
        notify: Callable[[str], None] = lambda line: None,
        least: int = 0,
        profile: ResourceProfile | None = None,
    ):
        """Prepares to wait for `tasks` slots, as long as the settings permit.

        Args:
            session: the job's session.
            tasks: number of tasks, which must run at the same time.
            notify: called with a status line when slots are first missing, whenever their number
                changes, and every ten seconds. If it raises, the wait ends.
            least: the minimum number of tasks. With at least this many slots the wait ends after
                `spark.hearth.executorWait`; with fewer slots it fails after
                `spark.hearth.minWorkersWait`. 0: equal to `tasks`.
            profile: the tasks' resource profile; None: Spark's default.

        Raises:
            HearthError: a setting is not a time.
        """
        self._session = session
        self._tasks = tasks
        self._least = least or tasks
        self._notify = notify
        self._profile = profile
        self.by_demand = not least  # a job with `least` would start fewer tasks
        self._limit_s, self._limit_setting = executor_wait_s(session), WAIT_SETTING
        self._patience_s = self._limit_s
        if least:
            self._limit_setting = LEAST_WAIT_SETTING
            self._limit_s = time_setting_s(session, LEAST_WAIT_SETTING, _LEAST_WAIT)
        self._waited_s = 0.0
        self._since: float | None = None  # time when slots were first missing
        self._reported: tuple[int, float] = (-1, 0.0)  # the last report: (slots, time)

    def wait(self, waited_s: float = 0.0) -> None:
        """Waits until look() returns true; raises like look(). `waited_s`: how long executors have
        already been awaited.
        """
        self._waited_s = waited_s
        while not self.look():
            time.sleep(_LOOK_S)

    def look(self) -> bool:
        """Whether Spark has slots for all tasks or, once `spark.hearth.executorWait` has passed,
        for the minimum number of tasks. True if Spark does not report slots.

        Raises:
            HearthError: there were too few slots until the limit, there can never be enough, or the
                session has ended.
        """
        slots = slots_now(self._session, self._profile)
        by_demand = self.by_demand and self._profile is not None and is_on(self._session.conf.get)
        if slots is None or slots >= self._tasks or by_demand:
            self._since, self._waited_s = None, 0.0
            return True
        now = time.monotonic()
        if self._since is None:
            self._since, self._reported = now - self._waited_s, (-1, 0.0)
        waited = now - self._since
        local = is_local(self._session.conf.get("spark.master", ""))
        most = slots if local else most_slots(self._session, self._profile)
        never = most is not None and most < self._tasks
        enough = slots >= self._least
        if enough and (never or waited >= self._patience_s):
            return True
        if never and most < self._least:
            raise self._too_few(slots)
        limit = self._patience_s if enough else self._limit_s
        if waited >= limit:
            late = f" and got no more within {limit:.0f} s of waiting for executors"
            raise self._too_few(slots, f"{late} ({self._limit_setting})")
        if slots != self._reported[0] or now - self._reported[1] >= _REPORT_S:
            self._reported = slots, now
            ask_for_slots(self._session, self._tasks, self._profile)
            needed = f", {self._least} at least" if self._least < self._tasks else ""
            stands = f"{slots} of {self._tasks} slots{needed} ({waited:.0f} of {limit:.0f} s)"
            self._notify(f"waiting for executors: {stands}")
        return False

    def _too_few(self, slots: int, late: str = "") -> Exception:
        n = self._least
        of = f" of their {described(self._profile)}" if self._profile is not None else ""
        return HearthError(
            f"{n} ranks need {n} task slots{of} at the same time, but the cluster has "
            f"{slots}{late}: lower the number of ranks (-clusterSize, num_executors), or give "
            "Spark more executors (or cores, or fewer spark.task.cpus)"
        )


def await_executors(
    session: SparkSession,
    most: int,
    notify: Callable[[str], None],
    profile: ResourceProfile | None = None,
) -> None:
    """With dynamic allocation, waits up to `spark.hearth.executorWait` for slots for `most` tasks
    of the profile, or as many as the settings permit. Fewer slots are not an error, because Spark
    starts executors for waiting tasks.
    """
    if is_on(session.conf.get):
        tasks = min(most, most_slots(session, profile) or most)
        wait = SlotWait(session, tasks, notify, profile=profile)
        wait.by_demand = False
        with suppress(HearthError):
            wait.wait()


def executor_wait_s(session: SparkSession) -> float:
    """How long executors may take to start. Raises HearthError if the setting is invalid."""
    return time_setting_s(session, WAIT_SETTING, _WAIT)


def slots_now(session: SparkSession, profile: ResourceProfile | None = None) -> int | None:
    """The number of tasks with the profile (None: Spark's default) that can run at once. With Spark
    Connect, the maximum in the settings; None if they have none.

    Raises:
        HearthError: the session has ended, or its cluster does not support the profile.
    """
    if not hasattr(session, "_jsc"):
        return most_slots(session, profile)
    if session._jsc.sc().isStopped():
        raise HearthError("Spark's session has ended, and its executors with it")
    return slots_for(session, profile)


def most_slots(session: SparkSession, profile: ResourceProfile | None = None) -> int | None:
    """The maximum number of slots; None if the settings do not limit it."""
    if profile is not None and profile.executorResources:
        return None
    master, cpus = session.conf.get("spark.master", ""), task_cpus(session.conf.get, profile)
    if not master.startswith("yarn"):
        return local_slots(master, cpus)
    if is_on(session.conf.get):
        executors = most_executors(session.conf.get)
    else:
        executors = int(session.conf.get("spark.executor.instances", "2"))
    return executors and executors * (int(session.conf.get("spark.executor.cores", "1")) // cpus)


def local_slots(master: str, cpus: Fraction | int) -> int | None:
    """The slots of a `local[n]` or `local-cluster[n,cores,mb]` master; None for other masters."""
    if local := re.fullmatch(r"local\[(\d+)(?:,\d+)?\]", master):
        return int(local[1]) // cpus
    if cluster := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master):
        return int(cluster[1]) * (int(cluster[2]) // cpus)
    return None


def is_local(master: str) -> bool:
    """Whether the driver is the only executor."""
    return master == "local" or master.startswith("local[")
