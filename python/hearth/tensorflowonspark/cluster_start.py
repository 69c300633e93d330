"""Brings the nodes of a cluster up, or says which stay away and why that may be."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hearth.tensorflowonspark import reservation, roles
from hearth.tensorflowonspark.cluster_watch import ClusterWatch, MarkedRdds, SparkJob
from hearth.tensorflowonspark.errors import NodeError, ReservationTimeoutError

logger = logging.getLogger(__name__)

_ROSTER_WAIT_S = 0.25
_JOB_END_WAIT_S = 5.0


class Key(str):
    """A cluster's key, which does not print itself."""

    def __repr__(self) -> str:
        return "'***'"

    __str__ = str.__str__


class ClusterStart:
    """The coordinator and the start job of one cluster. Used by one thread until wait_nodes()."""

    def __init__(self, meta: dict[str, Any], sc: Any, timeout_s: float):
        from hearth.native._core import Coordinator, new_token

        self._meta = meta
        self._sc = sc
        self._timeout_s = timeout_s
        self._template = meta["cluster_template"]
        bind_host, host = _coordinator_hosts(sc)
        token = new_token()
        self.coordinator = _bind(
            lambda port: Coordinator(
                world=meta["num_executors"],
                token=token,
                bind_host=bind_host,
                bind_port=port,
                # Its own limit starts with the first node; this one is the driver's.
                reserve_timeout_s=timeout_s + 60,
            )
        )
        meta["token"] = Key(token)
        meta["coordinator"] = (host, self.coordinator.port())
        self.inferences = MarkedRdds(sc)
        self.watch = ClusterWatch(self.coordinator, self._template, self.inferences.cancel)
        self.job: SparkJob | None = None
        self._driver_nodes: list[threading.Thread] = []

    def launch(self, nodes: Any, body: Callable[..., None], driver_ids: Iterable[int]) -> None:
        """Starts the job that starts the nodes, and those that run beside the driver."""
        for executor_id in driver_ids:
            thread = threading.Thread(target=_run_quietly, args=(body, executor_id), daemon=True)
            thread.start()
            self._driver_nodes.append(thread)
        self.job = SparkJob(self._sc, self.watch, lambda: nodes.foreachPartition(body))

    def wait_nodes(self) -> list[dict[str, Any]]:
        """Every node's entry of cluster_info, by id.

        Raises:
            ReservationTimeoutError: some did not come.
            NodeError: one failed.
        """
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                nodes = self.coordinator.wait_roster(_ROSTER_WAIT_S)
                return [{**node, "authkey": self._meta["token"]} for node in nodes]
            except TimeoutError as error:
                if time.monotonic() > deadline:
                    raise ReservationTimeoutError(self._describe_missing(str(error))) from None
            except RuntimeError:
                self._raise_failure()
            if self.job is not None and self.job.error is not None:
                self._raise_failure()

    def _raise_failure(self) -> None:
        self.watch.wait(lambda: False, 1.0)
        self.watch.check()
        if self.job is not None and self.job.error is not None:
            raise NodeError(f"the nodes could not be started: {self.job.error}")

    def _describe_missing(self, known: str) -> str:
        """Who is missing, where the others are, and why that may be."""
        names = [roles.name_of(self._template, i) for i in range(self._meta["num_executors"])]
        roster = ", ".join(f"{i} is {name}" for i, name in enumerate(names))
        return (
            f"timed out waiting for reservations to complete: within {self._timeout_s:g} s {known} "
            f"(of the ranks, {roster}); {self._likely_reason()}"
        )

    def _likely_reason(self) -> str:
        scala_context = self._sc._jsc.sc()
        profile = scala_context.resourceProfileManager().defaultResourceProfile()
        slots = scala_context.maxNumConcurrentTasks(profile)
        needed = self._meta["num_executors"]
        conf = self._sc.getConf()
        if slots < needed:
            text = (
                f"each node needs a task slot of its own, but the cluster has {slots} for {needed} "
                "nodes: give Spark more executors or cores, lower spark.task.cpus or "
                "num_executors, or look whether executors of this memory "
                f"({conf.get('spark.executor.memory', '1g')}) fit on the hosts"
            )
            if conf.get("spark.dynamicAllocation.enabled", "false") == "true":
                text += "; spark.dynamicAllocation.enabled is true: set it to false, or its minimum"
            return text
        return (
            f"the cluster has {slots} task slots: perhaps other jobs hold them, or executors "
            "cannot reach the driver at {}:{}".format(*self._meta["coordinator"])
        )

    def broadcast(self, message: Mapping[str, Any]) -> None:
        self.coordinator.broadcast(json.dumps(message))

    def close(self) -> None:
        """Ends nodes and job. Never raises; idempotent."""
        # Where nodes still run, something failed: Spark must not try to start them again.
        if self.job is not None:
            self.job.cancel()
        self.broadcast({"op": "stop"})
        self.watch.close()
        if self.job is not None:
            self.job.join(_JOB_END_WAIT_S)
        for thread in self._driver_nodes:
            thread.join(_JOB_END_WAIT_S)


def _run_quietly(body: Callable[..., None], executor_id: int) -> None:
    try:
        body(iter([executor_id]))
    except NodeError as error:  # the rendezvous has told the driver
        logger.warning("%s", error)


def _coordinator_hosts(sc: Any) -> tuple[str, str]:
    """(address to listen on, host for executors to connect to): TFOS_SERVER_HOST, or Spark's."""
    from hearth.launch import coordinator_hosts

    chosen = os.environ.get("TFOS_SERVER_HOST")
    if chosen:
        return chosen, chosen
    return coordinator_hosts(_Session(sc))


class _Session:
    """What coordinator_hosts() asks of a session."""

    def __init__(self, sc: Any):
        self.sparkContext = sc


def _bind(make: Callable[[int], Any]) -> Any:
    """make(port) for the first port of TFOS_SERVER_PORT that is free.

    Raises:
        OSError: none is.
    """
    ports: Sequence[int] = reservation.server_ports()
    for port in ports:
        try:
            return make(port)
        except (OSError, RuntimeError, ValueError) as error:
            if port == ports[-1]:
                raise OSError(
                    f"no port of TFOS_SERVER_PORT={os.environ.get('TFOS_SERVER_PORT')} is free: "
                    f"{error}"
                ) from error
    raise AssertionError("server_ports() is never empty")
