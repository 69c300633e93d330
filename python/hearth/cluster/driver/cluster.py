"""A cluster of nodes on a Spark application's executors: started, fed and ended from the driver."""

from __future__ import annotations

import logging
import os
import random
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self, Unpack

from hearth.cluster import roles
from hearth.cluster.driver import reservation
from hearth.cluster.driver.datasets.delivery import Datasets
from hearth.cluster.driver.feed_jobs import FeedJobs
from hearth.cluster.driver.missing_nodes import check_feeders
from hearth.cluster.driver.plan import WAIT_S, Plan
from hearth.cluster.driver.reports.front import Reporting, output_here
from hearth.cluster.driver.reports.reports import ReportOptions, Reports, Shown
from hearth.cluster.driver.restart import Restarts
from hearth.cluster.driver.split_plans import SplitPlans
from hearth.cluster.driver.start import ClusterStart, Key, Meta
from hearth.cluster.errors import ClusterError, NodeError
from hearth.cluster.task.node_job import NodeOptions, NodeProgram, start_body
from hearth.spark.access import spark_access
from hearth.spark.dynamic_allocation import ask_for_slots
from hearth.spark.links import link_environment
from hearth.spark.ports import FEED, NODE, ports_of
from hearth.spark.slots import await_executors, executor_wait_s

logger = logging.getLogger(__name__)

# For the thread that answers nodes, at the end: it may be listing files.
_FILES_END_S = 5.0


def run(
    spark: Any,
    main_fun: Callable[[Any, Any], Any],
    args: Any = None,
    nodes: int = 1,
    *,
    roles_of_nodes: Mapping[str, int] | None = None,
    feeds: Sequence[str] = ("input",),
    datasets: Mapping[str, Any] | None = None,
    restart: bool = False,
    checkpoint_dir: str = "",
    profile: Any = None,
    timeout_s: float = WAIT_S,
    **shown: Unpack[Shown],
) -> Cluster:
    """Starts nodes that run main_fun(args, ctx), each in a process of its own on an executor.

    Args:
        spark: a SparkSession, of Spark Connect, too, or a SparkContext.
        main_fun: the main function; pickled by value where executors cannot import it.
        args: its first argument; a list becomes the node's sys.argv.
        nodes: how many, all of the role "worker".
        roles_of_nodes: number of nodes by role instead; those of "ps" and "evaluator" get no rows
            and are ended after the others.
        feeds: names of the feeds by which train() and inference() bring rows; none: Spark's tasks
            stay with the nodes, which read their data themselves.
        datasets: by name the rows that each node opens by ctx.dataset(): a DataFrame, or a source
            of hearth.data, whose files the nodes read.
        restart: where an executor is lost, or a node killed by SIGKILL, train() and shutdown()
            start all nodes again, with ctx.restart_count one higher, and send all rows again that
            are not safe (see DataFeed.commit). main_fun resumes from its own checkpoint.
        checkpoint_dir: path or URI, which all hosts see, of ctx.checkpoint_dir, where main_fun
            leaves its checkpoints (for Keras by hearth.tensorflow.BackupAndRestore).
        profile: a pyspark.resource.ResourceProfile: what each node holds until it ends. None: what
            spark.hearth.task.* say, else what all tasks ask for.
        timeout_s: seconds for all nodes to come.
        shown: logs, log_dir, ui, on_report: what the driver shows and records; see Shown.

    Raises:
        ReservationTimeoutError: not all nodes came; says which, and why that may be.
        NodeError: a node failed while it started.
        HearthError: Spark would end idle nodes (spark.dynamicAllocation.enabled).
        TypeError, ValueError, OSError: a dataset is no rows, or its files cannot be listed.
    """
    template = roles.template_of(roles_of_nodes or {"worker": nodes})
    datasets = datasets or {}
    reports = ReportOptions.of(main_fun, args, shown)
    options = NodeOptions(
        queues=tuple(feeds),
        background=bool(feeds or datasets),
        checkpoint_dir=checkpoint_dir,
        logs=reports.logs,
    )
    plan = Plan(template, options, restart=restart, timeout_s=timeout_s, profile=profile)
    cluster = Cluster(spark, replace(plan, datasets=datasets, reports=reports))
    cluster.start(NodeProgram(main_fun, args))
    return cluster


class Cluster(Reporting):
    """A running cluster, as run() made it. Any thread may use it; `with` ends it.

    Attributes:
        nodes: what each node said of itself, by id: role, host, port, ...
        meta: what nodes know of the cluster.
    """

    def __init__(self, spark: Any, plan: Plan):
        """Starts nothing yet: start() does."""
        from hearth.native._core import FeedLedger

        self.spark = spark_access(spark, plan.profile, plan.holds)
        if self.spark.holds and plan.options.background:
            plan = replace(plan, options=replace(plan.options, holds=True))
        self.plan = plan
        self.reports = Reports(plan.reports, plan.template, self.stop_training)
        size = sum(map(len, plan.template.values()))
        ports, _ = reservation.ports_of_driver(self.spark.conf)
        self.server = reservation.Server(size, hosts=self.spark.coordinator_hosts(), ports=ports)
        self.meta = Meta(self.server.start)
        self.meta |= {
            "id": random.getrandbits(64),
            "cluster_template": plan.template,
            "num_executors": size,
            "default_fs": self.spark.default_fs(),
            "working_dir": os.getcwd(),
            "release_port": plan.release_port,
            "restart_count": 0,
            "output_here": output_here(self.spark, plan),
            "ports": {key: ports_of(self.spark.conf, key) for key in (FEED, NODE)},
            "links": link_environment(self.spark.conf),
        }
        self.nodes: list[dict[str, Any]] = []
        ranks, folder = len(roles.fed_ids(plan.template)), plan.options.checkpoint_dir
        self.datasets = Datasets(self.spark, plan.datasets, ranks, folder)
        self.meta["datasets"] = self.datasets.meta()
        self.meta["keep_key"] = Key(secrets.token_hex(32))
        self.ledger = FeedLedger()
        self.node_ids = [i for i in range(size) if i not in plan.beside_driver]
        self.node_tasks = self.spark.nodes(self.node_ids)
        self.restarts = Restarts(self) if plan.restart else None
        # By the server a client may end a stream.
        streams = partial(self.meta.get, "server_addr"), self.server.stop
        self.feeds = FeedJobs(
            self.spark, self.ledger, lambda: self.running, self.restarts, *streams
        )
        self.files = SplitPlans(self.spark.session)
        self._files_thread: threading.Thread | None = None
        self._most_workers = size
        self._body: Any = None  # what starts a node
        self._shutdown_lock = threading.Lock()
        self._ended = False
        self._over = False  # what is started from now on would be ended by nobody
        self._error: BaseException | None = None

    def start(self, program: NodeProgram) -> None:
        """Starts all nodes; ends what there is of them where that fails. Raises as run()."""
        if self.plan.options.background:
            self.spark.check_nodes()
        try:
            if self.plan.least_workers:
                await_executors(self.spark.session, self._most_workers, logger.warning)
                self.fit_workers()
            self._body = start_body(program, self.meta, self.plan.options)
            self.launch()
        except BaseException:
            self.end()
            raise

    def fit_workers(self) -> None:
        """The next start has as many workers as there are slots, within the plan's bounds."""
        least, most = self.plan.least_workers, self._most_workers
        slots = self.spark.slots()
        count = most if slots is None else min(most, max(least, slots))
        self.plan = replace(self.plan, template=roles.template_of({"worker": count}))
        self.meta |= {"cluster_template": self.plan.template, "num_executors": count}
        self.node_ids = list(range(count))
        self.node_tasks = self.spark.nodes(self.node_ids)

    def _grow(self) -> None:
        """After a checkpoint: starts again where slots for more workers have come."""
        count = len(self.node_ids)
        slots = min(self.spark.slots() or 0, self._most_workers)
        if count < slots and self.restarts is not None:
            self.running.grow(f"there are slots for {slots} workers instead of {count}")
        elif count < self._most_workers:
            ask_for_slots(self.spark.session, self._most_workers)

    def launch(self) -> None:
        """Starts all nodes, for the first time or again; raises what run() does."""
        self._running = ClusterStart(self.meta, self.spark, self.plan.timeout_s, self.ledger)
        if self._over:
            self._running.close()
        self.check_not_over()
        if self.plan.least_workers:
            self.running.watch.on_commit = self._grow
        self.reports.open()  # a delegation token may be needed, which was forwarded now
        self.reports.begin(self.plan.template)
        self.running.watch.reports = self.reports.note
        beside = sorted(self.plan.beside_driver)
        self.nodes = self.running.start(self.node_tasks, self._body, beside)
        self._pass_on_stop()
        self._files_thread = self.files.serve(self.running, self.nodes)
        if self.datasets.has_frames:
            wait_s = executor_wait_s(self.spark.session) if self.meta["restart_count"] else 0.0
            check_feeders(self.spark, self.plan.options, len(self.node_ids), wait_s)
        self.datasets.begin(self.running, self.nodes)
        for node in self.nodes:
            name = f"{node['job_name']}:{node['task_index']}"
            logger.info("node %s on %s", name, node["host_name"])

    def train(
        self, rows: Any, epochs: int = 1, timeout_s: float = WAIT_S, feed: str = "input"
    ) -> None:
        """Feeds all rows to the nodes; returns when they are used up.

        Args:
            rows: an RDD, a DataFrame (columnar all the way), or a DStream (returns at once).
            epochs: how often each row is given. Later epochs are replayed by the nodes from their
                disks, unless the cluster may start again.
            timeout_s: seconds that a node may take no rows; -1: no limit.
            feed: by name.

        Raises:
            NodeError: a node failed; within seconds, with its traceback or signal. Where its
                executor was lost, with the number of rows that were not consumed.
            FeedTimeoutError: a node took no rows for `timeout_s`.
            ClusterError: the rows cannot be computed, or cannot be fed; or the cluster has ended.
            ValueError: a DStream for a cluster that may start again; a streaming DataFrame; no feed
                of that name.
            TypeError: these are no rows of Spark.
        """
        self._check_takes_rows(feed)
        self.feeds.train(rows, epochs, timeout_s, feed)

    def inference(
        self, rows: Any, timeout_s: float = WAIT_S, feed: str = "input", schema: Any = None
    ) -> Any:
        """The nodes' results, one per row and in order within each partition; lazily.

        Args:
            rows: an RDD or a DataFrame (columnar on its way to the nodes).
            timeout_s: seconds without any result; -1: no limit.
            feed: by name.
            schema: of the results, which then come as a DataFrame; Spark Connect needs one.

        Returns:
            An RDD of the results, or a DataFrame.
        """
        self._check_takes_rows(feed)
        return self.feeds.inference(rows, timeout_s, feed, schema)

    def _check_takes_rows(self, feed: str) -> None:
        check_feeders(self.spark, self.plan.options, len(self.node_ids))
        if self._ended:
            why = f" ({self._error})" if self._error is not None else ""
            raise ClusterError(
                f"the cluster has ended{why}: feed it before its shutdown(), within `with`, or "
                "run() another one"
            )
        if feed not in self.plan.options.queues:
            known = ", ".join(self.plan.options.queues) or "none"
            raise ValueError(f"the cluster has no feed {feed!r}: its feeds are {known}")

    def shutdown(self, ssc: Any = None, grace_s: float = 0.0, timeout_s: float = 259200.0) -> None:
        """Ends the feeds, waits until all main functions have returned, and ends the cluster.

        Any thread may call it, and again: it does nothing then, but raises the same failure.

        Args:
            ssc: a StreamingContext, which is stopped first, once the cluster was asked to stop.
            grace_s: seconds that ps and evaluator get to end by themselves after the workers.
            timeout_s: seconds for all of it; -1: no limit.

        Raises:
            NodeError: a node failed, perhaps long before.
            ClusterError: the nodes did not end in time; they are killed.
        """
        with self._shutdown_lock:
            if not self._ended:
                try:
                    self._shutdown(ssc, grace_s, timeout_s)
                except BaseException as error:
                    self._error = error
                    raise
                finally:
                    self._ended = True
                    self.end()
            elif self._error is not None:
                raise self._error

    def _shutdown(self, ssc: Any, grace_s: float, timeout_s: float) -> None:
        until = time.monotonic() + timeout_s

        def wait(nodes: Sequence[int], who: str) -> None:
            left = None if timeout_s < 0 else max(0.0, until - time.monotonic())
            if not self.running.watch.wait_done(nodes, left):
                self.running.watch.check()
                raise ClusterError(f"the cluster's {who} did not end within {timeout_s:g} s")

        if ssc is not None:
            self._stop_streaming(ssc)
        while True:
            running = self.running
            try:
                self._wait_for_nodes(running, grace_s, wait)
                return
            except NodeError as error:
                if self.restarts is None:
                    raise
                self.restarts.recover(running, error)

    def _wait_for_nodes(
        self, running: ClusterStart, grace_s: float, wait: Callable[[Sequence[int], str], None]
    ) -> None:
        """Lets all nodes of this start come to their end."""
        if self.plan.options.background:
            running.broadcast({"op": "end"})
        fed = roles.fed_ids(self.plan.template)
        wait(fed, "workers")
        others = [i for ids in self.plan.template.values() for i in ids if i not in fed]
        if others:
            running.watch.wait_done(others, grace_s)
            running.watch.check()
            running.broadcast({"op": "stop"})
            wait(others, "ps or evaluator")
        running.watch.check()
        if running.job is not None:
            if self.plan.options.holds:
                running.broadcast({"op": "stop"})
            running.job.wait()

    def _stop_streaming(self, ssc: Any) -> None:
        """Waits until the cluster is asked to stop, or failed; then stops the stream."""
        while not self.server.wait_done(1.0) and self.running.watch.failure is None:
            if ssc.awaitTerminationOrTimeout(0.0):
                return
        ssc.stop(stopSparkContext=False, stopGraceFully=self.running.watch.failure is None)

    def check_not_over(self) -> None:
        """Raises ClusterError where end() was called, perhaps by another thread."""
        if self._over:
            raise ClusterError("the cluster was ended while it was about to start again")

    def end(self) -> None:
        """Ends every process and job that is left; never raises."""
        self._over = True
        if self._running is not None:
            self._running.close()
        if self._files_thread is not None:
            self._files_thread.join(_FILES_END_S)
        self.server.stop()
        self.spark.release()
        folder = self.plan.options.checkpoint_dir
        known = {"checkpoint_dir": folder} if folder else {}
        self.reports.note_params({**known, **self.datasets.described()})
        self.reports.close(self._error or sys.exception())

    def bytes_read(self) -> tuple[int, int]:
        """Bytes of files elsewhere that nodes read: from disks of their own hosts, and of others.

        Complete when the cluster has ended.
        """
        return self.files.near, self.files.far

    def tensorboard_url(self) -> str | None:
        """ "http://host:port" of the cluster's TensorBoard; None where there is none."""
        for node in self.nodes:
            if node["tb_port"] != 0:
                return f"http://{node['host']}:{node['tb_port']}"
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, _: object) -> None:
        if error is None:
            self.shutdown()
            return
        self._ended, self._error = True, error
        self.end()
