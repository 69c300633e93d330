"""Restarts a cluster after the loss of a process, and resends rows that are not safe."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from hearth.cluster.driver.feed_job import FeedJob
from hearth.cluster.errors import ClusterError, NodeError, ReservationTimeoutError
from hearth.native.failure import Failure
from hearth.spark import restarts
from hearth.spark.restarts import Lost, NotReplaced
from hearth.spark.slots import SlotWait

if TYPE_CHECKING:
    from hearth.cluster.driver.plan import Plan
    from hearth.cluster.driver.start import ClusterStart

logger = logging.getLogger(__name__)

# Limit of restarts without a checkpoint in between: a program that always loses executors before
# its first checkpoint never makes progress.
_MAX_RESTARTS = 10
_KILLED_AGAIN = (
    "it is the second such kill without a checkpoint in between (feed.commit() reports one), so "
    "the cluster is not restarted: if the host ran out of memory, use smaller minibatches "
    "or fewer nodes per host, or raise spark.executor.memoryOverhead"
)


class Restartable(Protocol):
    """The part of Cluster that Restarts uses."""

    spark: Any
    ledger: Any
    plan: Plan
    node_ids: list[int]
    meta: Any
    feeds: Any  # the RowSender
    reports: Any

    @property
    def running(self) -> ClusterStart:
        """The latest start."""

    def fit_workers(self) -> None:
        """Sets the number of workers of the next start to the available slots."""

    def launch(self) -> None:
        """Starts all nodes."""

    def check_not_over(self) -> None:
        """Raises ClusterError if the cluster has ended."""


class Restarts:
    """The restarts of one cluster. Retains feed jobs until their rows are safe, to resend the rows.
    Thread-safe."""

    def __init__(self, cluster: Restartable):
        self._cluster = cluster
        self._lock = threading.Lock()
        self._jobs: list[FeedJob] = []  # in order of arrival
        tasks = len(cluster.node_ids)
        session = cluster.spark.session
        self._generations = restarts.Restarts(session, tasks, _MAX_RESTARTS, self._report_wait)
        self._await_slots()
        self._exhausted = False
        self._killed = False  # a node's process was killed after the last checkpoint

    def _await_slots(self) -> None:
        """Makes the next restart wait for slots for all current nodes. If the number of workers may
        change, the restart uses fewer nodes after the wait."""
        plan, tasks = self._cluster.plan, len(self._cluster.node_ids)
        spark = self._cluster.spark
        self._generations.slots = SlotWait(
            spark.session, tasks, self._report_wait, plan.least_workers, spark.profile
        )

    @property
    def count(self) -> int:
        """How often the cluster has restarted."""
        return self._generations.count

    def send(self, job: FeedJob) -> bool:
        """Sends all rows of a job, again after each restart; returns whether a node needs no more
        rows.

        Raises:
            ClusterError: a node reported an error, or the cluster could not restart.
        """
        cluster = self._cluster
        self._forget_safe()
        cluster.ledger.open(job.feed)
        self._jobs.append(job)
        while True:
            running = cluster.running
            try:
                return self._send(job)
            except NodeError as error:
                self.recover(running, error)

    def _send(self, job: FeedJob) -> bool:
        safe = self._cluster.ledger.safe(job.feed)
        results = self._cluster.feeds.send(job)
        delivered = {index for index, _ in results}
        if job.compare and (empty := sorted(safe - delivered)):
            raise NodeError(
                f"partitions {empty} had rows before the restart, but are empty now: "
                "pass rows that Spark recomputes identically, such as files"
            )
        job.delivered = (job.delivered or frozenset()) | delivered
        return any(ended for _, ended in results)

    def _forget_safe(self) -> None:
        ledger = self._cluster.ledger
        for job in list(self._jobs):
            if job.delivered is not None and job.delivered <= ledger.safe(job.feed):
                self._jobs.remove(job)
                ledger.close(job.feed)

    def ensure_running(self) -> None:
        """Restarts the cluster if it has lost a process."""
        running = self._cluster.running
        try:
            running.watch.check()
        except NodeError as error:
            self.recover(running, error)

    def recover(self, failed: ClusterStart, error: NodeError) -> None:
        """Restarts the nodes of `failed`, unless another thread has done so; resends rows that are
        not safe.

        Raises:
            NodeError: `error`, if no process was lost; or the limit of restarts is reached.
            ClusterError: the new nodes could not be started.
        """
        with self._lock:
            if self._cluster.running is not failed:
                return
            try:
                self._generations.run(self._start_again, self._clear, self._as_lost(error))
            except Lost as lost:
                raise self._final(lost.failure) from lost.__cause__
            except NotReplaced as not_replaced:
                self._record_failure(self._cluster.running, not_replaced)
                raise ClusterError(str(not_replaced)) from None

    def _as_lost(self, error: NodeError) -> Lost:
        """The loss that caused `error`; raises `error` if there is none."""
        running = self._cluster.running
        watch = running.watch
        if running.scales_up:
            self._generations.note_progress()
            return Lost(Failure(running.scales_up))
        known = watch.await_cause()
        if known is None or known.rank < 0 or not known.is_loss or self._exhausted:
            raise error
        failure = Failure.of(vars(error), text=str(error))
        if watch.committed:
            self._generations.note_progress()
        if not known.lost:  # only the node's process was killed, e.g. out of memory
            if self._killed and not watch.committed:
                raise self._final(replace(failure, text=f"{failure.text}; {_KILLED_AGAIN}"))
            self._killed = True
        elif watch.committed:
            self._killed = False
        return Lost(failure)

    def _final(self, failure: Failure) -> NodeError:
        """The exception to raise now, and by a later shutdown()."""
        self._exhausted = True
        self._cluster.running.watch.conclude(failure)
        return NodeError.of(failure)

    def _clear(self, lost: Lost) -> None:
        """Ends the remaining nodes before a restart."""
        logger.warning("%s: the cluster restarts (restart %d)", lost, self.count)
        self._cluster.running.close(wait_for_nodes=True)
        self._cluster.reports.note_restart(self.count, str(lost))
        self._cluster.ledger.start_again()

    def _report_wait(self, line: str) -> None:
        """Logs a status line of the wait for executors; ends the wait if the cluster has ended."""
        self._cluster.check_not_over()
        logger.warning("%s", line)

    def _start_again(self, generation: int) -> None:
        cluster, failed = self._cluster, self._cluster.running
        cluster.meta["restart_count"] = generation
        if cluster.plan.least_workers:
            cluster.fit_workers()
            self._await_slots()
        try:
            self._launch(failed)
            for job in list(self._jobs):
                if job.delivered is not None and not job.delivered <= cluster.ledger.safe(job.feed):
                    self._send(job)
        except NodeError as error:
            raise self._as_lost(error) from error

    def _launch(self, failed: ClusterStart) -> None:
        try:
            self._cluster.launch()
        except NodeError:
            raise
        except Exception as error:
            if isinstance(error, ReservationTimeoutError) and self._cluster.plan.least_workers:
                # Another executor was lost meanwhile; the next start may use fewer nodes.
                raise Lost(Failure(str(error))) from error
            self._record_failure(failed, error)
            raise

    def _record_failure(self, failed: ClusterStart, error: Exception) -> None:
        """Makes shutdown() raise the reason why the cluster could not restart."""
        self._exhausted = True
        text = f"the cluster could not restart: {error}"
        if self._cluster.running is failed:
            failed.watch.amend(text)
        elif (coordinator := self._cluster.running.coordinator) is not None:
            coordinator.fail(-1, "", text)
