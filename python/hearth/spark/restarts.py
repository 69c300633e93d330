"""Restarts a job that lost a process or host; each attempt is a generation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from hearth.errors import HearthError
from hearth.native.failure import Failure
from hearth.spark.executor_memory import RemovedExecutors
from hearth.spark.slots import SlotWait

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
    from pyspark.sql import SparkSession

Result = TypeVar("Result")


class Lost(Exception):
    """A process or host of a job was lost, so a retry may succeed."""

    def __init__(self, failure: Failure):
        super().__init__(failure.text)
        self.failure = failure


class NotReplaced(Exception):
    """Spark did not replace lost executors. The message has the number of slots."""

    def __init__(self, lost: Lost, why: str):
        super().__init__(why)
        self.lost = lost


class Restarts:
    """Restarts a job after each loss, up to a limit. Not thread-safe.

    Attributes:
        count: the number of restarts, which is also the number of the current generation.
        slots: waits for the slots of the next generation; may be replaced between generations.
    """

    def __init__(
        self,
        session: SparkSession,
        tasks: int,
        most: int,
        notify: Callable[[str], None] = lambda line: None,
        profile: ResourceProfile | None = None,
    ):
        """`tasks`: the number of tasks, which run at the same time. The job fails after `most`
        restarts without progress.

        `notify` is called with status lines while executors are awaited; if it raises, the wait
        ends. `profile`: the tasks' resource profile; None: Spark's default.

        Raises:
            HearthError: `spark.hearth.executorWait` is not a time.
        """
        self.count = 0
        self._counted_from = 0
        self.slots = SlotWait(session, tasks, notify, profile=profile)
        self._most = most
        self._removed = RemovedExecutors(session)

    def note_progress(self) -> None:
        """Resets the count of restarts without progress, after a checkpoint."""
        self._counted_from = self.count

    def run(
        self,
        attempt: Callable[[int], Result],
        on_restart: Callable[[Lost], None],
        lost: Lost | None = None,
    ) -> Result:
        """Calls attempt(generation) until it does not raise Lost, and returns its result.

        Args:
            attempt: runs one generation of the job to its end.
            on_restart: called after each loss has been counted. It notifies the user and ends the
                lost generation's remaining processes. Then slots for all tasks are awaited.
            lost: the loss that ended the last generation, if it has already ended.

        Raises:
            Lost: there were too many losses (the last one is raised), or the cluster killed a
                container for exceeding its memory limit; the failure has the reason.
            NotReplaced: there were no slots for another generation within
                `spark.hearth.executorWait`.
            Exception: any other exception of `attempt` or `notify`.
        """
        while True:
            if lost is not None:
                self._prepare(lost, on_restart)
            try:
                return attempt(self.count)
            except Lost as another:
                lost = another

    def _prepare(self, lost: Lost, on_restart: Callable[[Lost], None]) -> None:
        if killed := self._removed.memory_kill():  # another generation would fail, too
            raise _out_of_memory(lost, killed) from lost.__cause__
        if self.count - self._counted_from >= self._most:
            raise self._exhausted(lost) from lost.__cause__
        self.count += 1
        on_restart(lost)
        try:
            self.slots.wait()
        except HearthError as error:
            raise NotReplaced(lost, str(error)) from None

    def _exhausted(self, lost: Lost) -> Lost:
        since = " since the last checkpoint" if self._counted_from else ""
        tries = f" (failed after {self._most} restarts{since})" if self._most else ""
        return Lost(replace(lost.failure, text=f"{lost}{tries}"))


def _out_of_memory(lost: Lost, killed: str) -> Lost:
    text = (
        f"{lost}: its container was {killed} The trainer's memory is outside of the JVM's heap: "
        "raise spark.executor.memoryOverhead, or reduce the net or its batch_size"
    )
    return Lost(replace(lost.failure, text=text, code="resource_exhausted", lost=False))
