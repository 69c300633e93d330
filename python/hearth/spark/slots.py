"""The task slots that Spark has for a job's ranks or nodes, and the wait for those it lacks."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING

from hearth.spark.dynamic_allocation import ask_for_slots, is_on, most_executors
from hearth.spark.time_setting import time_setting_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long Spark may take to start or replace executors. The Workers of a standalone cluster need
# seconds, or a minute where their machine is busy; resource managers that start containers need
# minutes; where a machine is gone for good, nothing comes, and Spark does not report which it is.
WAIT_SETTING = "spark.hearth.executorWait"
_WAIT = "300s"

# Spark's Python API has no event for a new executor, so it is asked now and then.
_LOOK_S = 0.1
_TELL_S = 10.0


class SlotWait:
    """The wait until all tasks of a job can run at the same time. One thread uses it."""

    def __init__(
        self,
        session: SparkSession,
        tasks: int,
        tell: Callable[[str], None] = lambda line: None,
        waited_s: float = 0.0,
        least: int = 0,
    ):
        """`tasks` of the job run at once; slots may be too few as long as the setting says.

        Args:
            session: of the job.
            tasks: how many.
            tell: gets a line of how it stands when slots are first missed, whenever their number
                changes, and every ten seconds. What it raises ends the wait.
            waited_s: how long executors have been awaited already, where slots are too few now.
            least: with so many slots the wait ends at the limit, too; 0: as many as tasks.

        Raises:
            HearthError: the setting is no time.
        """
        self._session = session
        self._tasks = tasks
        self._least = least or tasks
        self._tell = tell
        self._limit_s = executor_wait_s(session)
        self._waited_s = waited_s
        self._since: float | None = None  # when slots were first too few
        self._told: tuple[int, float] = (-1, 0.0)  # slots, and when

    def wait(self) -> None:
        """Returns when there are slots for all tasks, or Spark does not tell; raises as look()."""
        while not self.look():
            time.sleep(_LOOK_S)

    def look(self) -> bool:
        """Whether there are slots for all tasks now, as far as Spark tells; after the
        limit for the least.

        Raises:
            HearthError: there have been too few for the limit, or there can never be enough; or
                the session has ended.
        """
        slots = slots_now(self._session)
        if slots is None or slots >= self._tasks:
            self._since, self._waited_s = None, 0.0
            return True
        now = time.monotonic()
        if self._since is None:
            self._since, self._told = now - self._waited_s, (-1, 0.0)
        most = slots if _is_local(self._session) else most_slots(self._session)
        never = most is not None and most < self._tasks
        if slots >= self._least and (never or now - self._since >= self._limit_s):
            return True
        if never and most < self._least:
            raise self._too_few(slots)
        if now - self._since >= self._limit_s:
            late = f" and got no more within {self._limit_s:.0f} s of waiting for executors"
            raise self._too_few(slots, f"{late} ({WAIT_SETTING})")
        if slots != self._told[0] or now - self._told[1] >= _TELL_S:
            self._told = slots, now
            ask_for_slots(self._session, self._tasks)
            waited = f"{now - self._since:.0f} of {self._limit_s:.0f} s"
            self._tell(f"waiting for executors: {slots} of {self._tasks} slots ({waited})")
        return False

    def _too_few(self, slots: int, late: str = "") -> Exception:
        from hearth import HearthError

        n = self._least
        return HearthError(
            f"{n} ranks need {n} task slots at the same time, but the cluster has {slots}{late}: "
            "lower the number of ranks (-clusterSize, num_executors), or give Spark more executors "
            "(or cores, or fewer spark.task.cpus)"
        )


def await_executors(
    session: SparkSession, least: int, most: int, tell: Callable[[str], None]
) -> None:
    """Where Spark starts executors by demand: waits for slots for `most` tasks until the limit is
    over. Fewer than the least are not an error yet, as Spark starts executors for waiting tasks."""
    from hearth import HearthError

    if is_on(session.conf.get):
        with suppress(HearthError):
            SlotWait(session, most, tell, least=least).wait()


def executor_wait_s(session: SparkSession) -> float:
    """How long executors may take to come; raises HearthError where that is no time."""
    return time_setting_s(session, WAIT_SETTING, _WAIT)


def slots_now(session: SparkSession) -> int | None:
    """Tasks that can run at once; None where Spark does not tell, as with Spark Connect.

    Raises:
        HearthError: the session has ended, so that no executor will come.
    """
    from hearth import HearthError

    if not hasattr(session, "_jsc"):
        return most_slots(session)
    scala_context = session._jsc.sc()
    if scala_context.isStopped():
        raise HearthError("Spark's session has ended, and so there are no executors any more")
    profile = scala_context.resourceProfileManager().defaultResourceProfile()
    return scala_context.maxNumConcurrentTasks(profile)


def most_slots(session: SparkSession) -> int | None:
    """The slots that there will be at most, where the settings say so."""
    master, cpus = session.conf.get("spark.master", ""), task_cpus(session.conf.get)
    if not master.startswith("yarn"):
        return local_slots(master, cpus)
    if is_on(session.conf.get):
        executors = most_executors(session.conf.get)
    else:
        executors = int(session.conf.get("spark.executor.instances", "2"))
    return executors and executors * (int(session.conf.get("spark.executor.cores", "1")) // cpus)


def local_slots(master: str, cpus: Fraction | int) -> int | None:
    """The slots that a `local[n]` or `local-cluster[n,cores,mb]` master has; None for others."""
    if local := re.fullmatch(r"local\[(\d+)(?:,\d+)?\]", master):
        return int(local[1]) // cpus
    if cluster := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master):
        return int(cluster[1]) * (int(cluster[2]) // cpus)
    return None


def _is_local(session: SparkSession) -> bool:
    """Whether the driver is the only executor, so that no other one will come."""
    master = session.conf.get("spark.master", "")
    return master == "local" or master.startswith("local[")


def task_cpus(conf: Callable[[str, str], str]) -> Fraction:
    """What a task takes of its executor's cores; since Spark 4.3 also less than one."""
    return Fraction(conf("spark.task.cpus", "1"))
