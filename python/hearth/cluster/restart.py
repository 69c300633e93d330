"""Starts a cluster again after an executor was lost; rows that were not safe come again."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from hearth.cluster import feed_jobs
from hearth.cluster.errors import ClusterError, NodeError
from hearth.cluster.feed_jobs import FeedJob

if TYPE_CHECKING:
    from hearth.cluster.cluster import Cluster
    from hearth.cluster.start import ClusterStart

logger = logging.getLogger(__name__)

# A program whose executors are killed again and again is not helped by starting it once more.
_MAX_RESTARTS = 10
# The feed's error may come before the rendezvous has told why.
_REASON_WAIT_S = 5.0


class Restarts:
    """Keeps the feed jobs of one cluster until their rows are safe. Any thread may use it."""

    def __init__(self, cluster: Cluster):
        self._cluster = cluster
        self._lock = threading.Lock()
        self._jobs: list[FeedJob] = []  # in the order in which they came
        self.count = 0
        self._given_up = False

    def bring(self, job: FeedJob) -> bool:
        """Brings all rows of a job, again after each loss; whether a node wants no more.

        Raises:
            ClusterError: a node failed by itself, or the cluster could not start again.
        """
        cluster = self._cluster
        self._forget_safe()
        cluster.ledger.open(job.feed)
        self._jobs.append(job)
        while True:
            running = cluster.running
            try:
                return self._bring(job)
            except NodeError as error:
                self.recover(running, error)

    def _bring(self, job: FeedJob) -> bool:
        safe = self._cluster.ledger.safe(job.feed)
        results = feed_jobs.bring(self._cluster, job)
        came = {index for index, _ in results}
        if job.compare and not safe <= came:
            raise NodeError(
                f"partitions {sorted(safe - came)} had rows before the restart and have none now: "
                "give rows that Spark computes alike each time, such as files"
            )
        job.brought = (job.brought or frozenset()) | came
        return any(ended for _, ended in results)

    def _forget_safe(self) -> None:
        ledger = self._cluster.ledger
        for job in list(self._jobs):
            if job.brought is not None and job.brought <= ledger.safe(job.feed):
                self._jobs.remove(job)
                ledger.close(job.feed)

    def ensure_running(self) -> None:
        """Starts the cluster again where that is due."""
        running = self._cluster.running
        try:
            running.watch.check()
        except NodeError as error:
            self.recover(running, error)

    def recover(self, failed: ClusterStart, error: NodeError) -> None:
        """Replaces the nodes of `failed`, unless another thread has; brings what was not safe.

        Raises:
            NodeError: `error`, where no executor was lost; or it happened too often.
            ClusterError: the new nodes could not be started.
        """
        with self._lock:
            while self._cluster.running is failed:
                failed.watch.wait(lambda: False, _REASON_WAIT_S)
                if failed.watch.lost is None or self._given_up or self.count == _MAX_RESTARTS:
                    raise error
                self.count += 1
                logger.warning("%s: the cluster starts again, for the %d. time", error, self.count)
                try:
                    self._start_again(failed)
                    return
                except NodeError as another:
                    failed, error = self._cluster.running, another

    def _start_again(self, failed: ClusterStart) -> None:
        cluster = self._cluster
        failed.close(wait_for_nodes=True)
        failed.replace_silent()
        cluster.meta["restart_count"] = self.count
        cluster.ledger.start_again()
        try:
            _wait_for_slots(cluster)
            cluster.launch()
        except NodeError:
            raise
        except Exception as error:  # shutdown() has to say so, too
            self._given_up = True
            text = f"the cluster could not start again: {error}"
            if cluster.running is failed:
                failed.watch.amend(text)
            else:
                cluster.running.coordinator.fail(-1, "", text)
            raise
        for job in list(self._jobs):
            if job.brought is not None and not job.brought <= cluster.ledger.safe(job.feed):
                self._bring(job)


def _wait_for_slots(cluster: Cluster) -> None:
    """Waits until Spark has replaced the executor. Raises ClusterError where it does not."""
    from hearth import HearthError
    from hearth.spark import preflight

    try:
        preflight.wait_for_replacements(cluster.spark.session, len(cluster.node_ids))
    except HearthError as error:
        raise ClusterError(str(error)) from None
