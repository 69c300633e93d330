"""What begins again where a process or host of a job went away: the generations of the job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from hearth.native.failure import Failure
from hearth.spark.executor_memory import RemovedExecutors
from hearth.spark.slots import SlotWait

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")


class Lost(Exception):
    """A process or host of a job went away: another generation may do better."""

    def __init__(self, failure: Failure):
        super().__init__(failure.text)
        self.failure = failure


class NotReplaced(Exception):
    """Spark did not replace what was lost; the message says how many slots there are."""

    def __init__(self, lost: Lost, why: str):
        super().__init__(why)
        self.lost = lost


class Restarts:
    """Starts a job again after each loss, up to a limit. One thread uses it at a time.

    Attributes:
        count: how often it has done so, which is the number of the generation that runs.
        slots: the wait for the slots of the next generation; may be replaced between two.
    """

    def __init__(
        self,
        session: SparkSession,
        tasks: int,
        most: int,
        tell: Callable[[str], None] = lambda line: None,
    ):
        """`tasks` of the job run at the same time; it is given up after `most` restarts without
        progress in between.

        `tell` gets lines of how the wait for lost executors stands, and ends it by raising.

        Raises:
            HearthError: `spark.hearth.executorWait` is no time.
        """
        self.count = 0
        self._counted_from = 0
        self.slots = SlotWait(session, tasks, tell)
        self._most = most
        self._removed = RemovedExecutors(session)

    def note_progress(self) -> None:
        """What the job has reached is safe, in a checkpoint: the limit counts anew from here."""
        self._counted_from = self.count

    def run(
        self,
        attempt: Callable[[int], Result],
        on_restart: Callable[[Lost], None],
        lost: Lost | None = None,
    ) -> Result:
        """The result of attempt(generation), made again until one is not Lost.

        Args:
            attempt: one generation of the job, to its end.
            on_restart: called after each loss, once it is counted. It tells the user and ends what
                is left of the generation that was lost; then slots for all tasks are awaited.
            lost: how the last generation ended, where it is over already.

        Raises:
            Lost: the last one, after too many or where the cluster ended a container for its
                memory; its failure says so.
            NotReplaced: there were no slots for another generation for as long as
                `spark.hearth.executorWait` says.
            Exception: what `attempt`, or `tell`, raises otherwise.
        """
        while True:
            if lost is not None:
                self._prepare(lost, on_restart)
            try:
                return attempt(self.count)
            except Lost as another:
                lost = another

    def _prepare(self, lost: Lost, on_restart: Callable[[Lost], None]) -> None:
        from hearth import HearthError

        if killed := self._removed.memory_kill():  # the next one would not fare better
            raise _out_of_memory(lost, killed) from lost.__cause__
        if self.count - self._counted_from >= self._most:
            raise self._given_up(lost) from lost.__cause__
        self.count += 1
        on_restart(lost)
        try:
            self.slots.wait()
        except HearthError as error:
            raise NotReplaced(lost, str(error)) from None

    def _given_up(self, lost: Lost) -> Lost:
        since = " since the last checkpoint" if self._counted_from else ""
        tries = f" (given up after {self._most} restarts{since})" if self._most else ""
        return Lost(replace(lost.failure, text=f"{lost}{tries}"))


def _out_of_memory(lost: Lost, killed: str) -> Lost:
    text = (
        f"{lost}: its container was {killed} What runs beside the JVM lies outside its heap: raise "
        "spark.executor.memoryOverhead, or make the net or its batch_size smaller"
    )
    return Lost(replace(lost.failure, text=text, code="resource_exhausted", lost=False))
