"""Starts the nodes of a cluster, or reports which are missing and why."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from hearth.cluster import roles
from hearth.cluster.driver import reservation
from hearth.cluster.driver.meta import Key
from hearth.cluster.driver.missing_nodes import fixed_slots, likely_reason
from hearth.cluster.driver.watch import ClusterJob, ClusterWatch, MarkedRdds, Observers
from hearth.cluster.errors import NodeError, ReservationTimeoutError, own_error
from hearth.native.failure import TaskError
from hearth.spark.job import SparkJob
from hearth.spark.ports import coordinator_ports
from hearth.spark.silent_executors import replace_executor
from hearth.spark.token_forwarder import forward_tokens

logger = logging.getLogger(__name__)

# Serializes starts. Otherwise Spark's FAIR scheduler could give two clusters each a part of the
# slots, and both would wait for the rest forever.
_turn = threading.Lock()

_MEMBERS_WAIT_S = 0.25
_REPORT_S = 10.0
_JOB_END_WAIT_S = 5.0
_NODES_END_WAIT_S = 10.0


class ClusterStart:
    """One start of a cluster: its coordinator and its start job. Not thread-safe until
    wait_nodes()."""

    def __init__(
        self,
        meta: dict[str, Any],
        spark: Any,
        timeout_s: float,
        ledger: Any,
        observers: Observers,
    ):
        from hearth.native._core import Coordinator, new_token

        self._meta = meta
        self._spark = spark
        self._timeout_s = timeout_s
        self._template = meta["cluster_template"]
        meta["tokens"] = forward_tokens(spark.session)
        bind_host, host = spark.coordinator_hosts()
        token = new_token()
        self.coordinator: Any = Coordinator(
            world=meta["num_executors"],
            token=token,
            bind_host=bind_host,
            # Longer than `timeout_s`, which wait_nodes() enforces: the coordinator counts from the
            # first node's arrival.
            reserve_timeout_s=timeout_s + 60,
            **coordinator_ports(*reservation.ports_of_driver(spark.conf)),
        )
        meta["token"] = Key(token)
        meta["coordinator"] = (host, self.coordinator.port())
        self.inferences = MarkedRdds(spark.handle)
        cancel = self.inferences.cancel
        self.watch = ClusterWatch(self.coordinator, self._template, cancel, ledger, observers)
        self.job: ClusterJob | None = None
        self.nodes: list[dict[str, Any]] = []  # descriptions of the nodes, by id
        self.deliveries: list[SparkJob] = []  # jobs that deliver datasets
        self.scales_up = ""  # why the cluster should restart with more workers
        self._started: list[int] = []  # ids of the nodes that Spark starts
        self._driver_nodes: list[threading.Thread] = []

    def start(
        self, nodes: Any, body: Callable[..., None], driver_ids: Sequence[int]
    ) -> list[dict[str, Any]]:
        """Calls launch(), then wait_nodes(); waits for other starts if Spark shares slots fairly
        between jobs."""
        fair = self._spark.conf("spark.scheduler.mode", "FIFO").upper() == "FAIR"
        with _turn if fair else nullcontext():
            self.launch(nodes, body, driver_ids)
            return self.wait_nodes()

    def launch(self, nodes: Any, body: Callable[..., None], driver_ids: Sequence[int]) -> None:
        """Starts the Spark job that starts the nodes, and the nodes that run in the driver."""
        ids = range(self._meta["num_executors"])
        self._started = [node for node in ids if node not in driver_ids]
        for executor_id in driver_ids:
            thread = threading.Thread(target=_run_quietly, args=(body, executor_id), daemon=True)
            thread.start()
            self._driver_nodes.append(thread)
        self.job = ClusterJob(self._spark, self.watch, self._spark.run_on(nodes, body))

    def wait_nodes(self) -> list[dict[str, Any]]:
        """Waits for all nodes; returns their descriptions, by id.

        Raises:
            ReservationTimeoutError: some nodes did not start, or cannot.
            NodeError: a node failed.
        """
        started = reported = time.monotonic()
        slots = fixed_slots(self._spark)
        while True:
            try:
                nodes = self.coordinator.wait_members(_MEMBERS_WAIT_S)
                self.nodes = [{**node, "authkey": self._meta["token"]} for node in nodes]
                return self.nodes
            except TimeoutError as error:
                waited = time.monotonic() - started
                if time.monotonic() - reported >= _REPORT_S:
                    reported = time.monotonic()
                    limit = f"{waited:.0f} of {self._timeout_s:.0f} s"
                    logger.warning("waiting for the cluster's nodes (%s): %s", limit, error)
                tasks = len(self._started)
                beside = self._meta["num_executors"] - tasks
                full = slots is not None and self.watch.joined - beside == slots < tasks
                if full or waited > self._timeout_s:
                    what = "not all nodes can start:"
                    if not full:
                        limit = f"within {self._timeout_s:.3g} s"
                        what = f"timed out waiting for reservations to complete: {limit}"
                    raise ReservationTimeoutError(self._missing(what, str(error))) from None
            except RuntimeError:  # the rendezvous has failed; the watch knows why
                self.watch.await_cause()
                self._raise_failure()
            if self.job is not None and self.job.error is not None:
                self._raise_failure()

    def _raise_failure(self) -> None:
        self.watch.await_cause(self.job.error if self.job is not None else None)
        self.watch.check()
        if self.job is not None and self.job.error is not None:
            raise NodeError(f"the nodes could not be started: {own_error(self.job.error)}")

    def _missing(self, what: str, known: str) -> str:
        """An error's text with the missing nodes (in `known`), the nodes' ranks, and the likely
        reason."""
        names = [roles.name_of(self._template, i) for i in range(self._meta["num_executors"])]
        reason = likely_reason(self._spark, len(self._started), self._meta["coordinator"])
        if all(name == f"worker:{i}" for i, name in enumerate(names)):
            return f"{what} {known}; {reason}"
        members = ", ".join(f"{i} is {name}" for i, name in enumerate(names))
        return f"{what} {known} (of the ranks, {members}); {reason}"

    def _replace_silent(self, is_gone: bool) -> None:
        """Makes Spark replace the executor of a node that does not respond.

        Its host may be disconnected, which Spark itself notices only after minutes. Until then
        Spark would start nodes there, which never join, and wait for the executor at the session's
        end. An executor that answers Spark may run other tasks, so it is not replaced, unless
        `is_gone`.
        """
        failure = self.watch.failure
        if failure is None or not failure.silent or self.job is None:
            return
        if failure.rank in self._started:
            partition = self._started.index(failure.rank)
            replace_executor(self._spark.session, self.job.tag, partition, not is_gone)

    def broadcast(self, message: Mapping[str, Any]) -> None:
        """Sends a message to all nodes; does nothing after close()."""
        if self.coordinator is not None:
            self.coordinator.broadcast(json.dumps(message))

    def fail(self, reason: str) -> None:
        """Fails the cluster with this reason, unless it has failed or ended before."""
        if (coordinator := self.coordinator) is not None:
            coordinator.fail(-1, "", reason)

    def scale_up(self, reason: str) -> None:
        """Ends this start; the next one has more workers."""
        self.scales_up = reason
        self.fail(reason)

    def close(self, wait_for_nodes: bool = False) -> None:
        """Ends the nodes and the start job. With `wait_for_nodes`, as before a restart, waits until
        all nodes have ended, and makes their hosts retain the rows of datasets. Never raises;
        idempotent."""
        if self.coordinator is None:
            return
        for delivery in self.deliveries:
            delivery.cancel()
        # If tasks still run, the cluster has failed: cancel them, so that Spark does not retry
        # them.
        if self.job is not None:
            self.job.cancel()
        self.broadcast({"op": "stop", "keep": wait_for_nodes})
        if wait_for_nodes:
            self.watch.wait_stopped(_NODES_END_WAIT_S)
        self.watch.close()
        self.coordinator = None
        for job in (self.job, *self.deliveries):
            if job is not None:
                job.join(_JOB_END_WAIT_S)
        for thread in self._driver_nodes:
            thread.join(_JOB_END_WAIT_S)
        if not wait_for_nodes:  # a restart needs the same executors
            self._spark.release()
        self._replace_silent(is_gone=wait_for_nodes)


def _run_quietly(body: Callable[..., None], executor_id: int) -> None:
    try:
        body(iter([executor_id]))
    except TaskError as error:  # the rendezvous has reported the failure
        logger.warning("%s", error.failure.text)
