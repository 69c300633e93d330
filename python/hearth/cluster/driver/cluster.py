"""A cluster of nodes on a Spark application's executors, started, fed and ended by the driver."""

from __future__ import annotations

import atexit
import logging
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
from hearth.cluster.driver.meta import meta_of
from hearth.cluster.driver.missing_nodes import check_feeders
from hearth.cluster.driver.plan import WAIT_S, Plan, named_datasets
from hearth.cluster.driver.reports.cluster_reports import Reporting, output_here
from hearth.cluster.driver.reports.reports import ReportOptions, Reports, Shown
from hearth.cluster.driver.restart import Restarts
from hearth.cluster.driver.row_sender import RowSender
from hearth.cluster.driver.split_plans import SplitPlans
from hearth.cluster.driver.start import ClusterStart
from hearth.cluster.driver.watch import Observers
from hearth.cluster.errors import ClusterError, NodeError
from hearth.cluster.task.node_job import NodeOptions, NodeProgram, start_body
from hearth.errors import invalid
from hearth.spark.access import spark_access
from hearth.spark.dynamic_allocation import ask_for_slots
from hearth.spark.slots import await_executors, executor_wait_s

logger = logging.getLogger(__name__)

# How long the cluster's end waits for the thread that answers nodes' file requests, because the
# thread may be listing files.
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
    """Starts nodes that run main_fun(args, ctx), each in its own process on an executor.

    Args:
        spark: a SparkSession (also of Spark Connect) or a SparkContext.
        main_fun: the main function; pickled by value if executors cannot import it.
        args: the first argument of main_fun; a list becomes the node's sys.argv.
        nodes: number of nodes, all with the role "worker".
        roles_of_nodes: number of nodes by role instead; "ps" and "evaluator" nodes get no rows and
            are ended after the others.
        feeds: names of the feeds through which train() and inference() send rows; empty: nodes read
            their data themselves, and the Spark tasks that start them last as long as the nodes.
        datasets: the rows, by name, that nodes open by ctx.dataset(): a DataFrame, or a source of
            hearth.data, whose files the nodes read.
        restart: if an executor is lost, or a node is killed by SIGKILL, train() and shutdown()
            restart all nodes, increment ctx.restart_count, and resend all rows that are not safe
            (see DataFeed.commit). main_fun resumes from its own checkpoint.
        checkpoint_dir: path or URI on storage shared by all hosts, given as ctx.checkpoint_dir, for
            main_fun's checkpoints (for Keras by hearth.tensorflow.BackupAndRestore).
        profile: a pyspark.resource.ResourceProfile, whose resources each node holds until it ends.
            None: the profile set by spark.hearth.task.*, else Spark's default.
        timeout_s: seconds for all nodes to start.
        shown: logs, log_dir, ui, on_report: how the driver shows and records reports; see Shown.

    Raises:
        ReservationTimeoutError: not all nodes started; the message lists the missing ones and the
            likely reason.
        NodeError: a node failed during its start.
        HearthError: Spark's dynamic allocation would remove executors of waiting nodes: with Spark
            Connect, or if spark.dynamicAllocation.cachedExecutorIdleTimeout is set.
        TypeError, ValueError, OSError: a dataset has an unsupported type, or its files cannot be
            listed.
    """
    template = roles.template_of(roles_of_nodes or {"worker": nodes})
    datasets = named_datasets(datasets)
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
    return cluster.warn_at_exit()


class Cluster(Reporting):
    """A running cluster, created by run(). Thread-safe; a `with` block ends it.

    Attributes:
        nodes: a description of each node (role, host, port, ...), by id.
        meta: the description of the cluster that nodes receive.
        spark: access to Spark, through the session or context given to run().
        plan: roles, options and datasets of the next start.
        server: accepts other programs' requests to end a stream.
        reports: the nodes' reports, and where the driver shows them.
        datasets: the datasets of ctx.dataset(), and their delivery to the nodes.
        feeds: sends rows to the nodes.
        ledger: counts the rows that are safe, so they need not be sent again.
        node_ids: ids of the nodes that Spark starts.
        restarts: restarts the nodes after a loss; None without restart=True.
    """

    def __init__(self, spark: Any, plan: Plan):
        """Does not start the nodes; see start()."""
        from hearth.native._core import FeedLedger  # imported here, as it loads the native library

        self.spark = spark_access(spark, plan.profile, plan.holds)
        if self.spark.holds and plan.options.background:
            plan = replace(plan, options=replace(plan.options, holds=True))
        self.plan = plan
        self.reports = Reports(plan.reports, plan.template, self.stop_training)
        size = sum(map(len, plan.template.values()))
        ports, _ = reservation.ports_of_driver(self.spark.conf)
        self.server = reservation.Server(size, hosts=self.spark.coordinator_hosts(), ports=ports)
        self.meta = meta_of(self.spark, plan, self.server)
        self.meta["output_here"] = output_here(self.spark, plan)
        self.nodes: list[dict[str, Any]] = []
        ranks, folder = len(roles.fed_ids(plan.template)), plan.options.checkpoint_dir
        self.datasets = Datasets(self.spark, plan.datasets, ranks, folder)
        self.meta["datasets"] = self.datasets.meta()
        self.ledger = FeedLedger()
        self.node_ids = [i for i in range(size) if i not in plan.beside_driver]
        self._node_tasks = self.spark.nodes(self.node_ids)
        self.restarts = Restarts(self) if plan.restart else None
        # Feeding a stream opens the server, through which clients may end the stream.
        streams = partial(self.meta.get, "server_addr"), self.server.stop
        self.feeds = RowSender(
            self.spark, self.ledger, lambda: self.running, self.restarts, *streams
        )
        self._files = SplitPlans(self.spark.session)
        self._files_thread: threading.Thread | None = None
        self._most_workers = size
        self._body: Any = None  # the function that starts a node
        self._shutdown_lock = threading.Lock()
        self._ended = False
        self._over = False  # end() was called, so later starts must not launch nodes
        self._error: BaseException | None = None

    def start(self, program: NodeProgram) -> None:
        """Starts all nodes; if one does not start, ends the others. Raises as run()."""
        if self.plan.options.background:
            self.spark.check_nodes()
        try:
            if self.plan.least_workers:
                session, profile = self.spark.session, self.spark.profile
                await_executors(session, self._most_workers, logger.warning, profile)
                self.fit_workers()
            self._body = start_body(program, self.meta, self.plan.options)
            self.launch()
        except BaseException:
            self.end()
            raise

    def fit_workers(self) -> None:
        """Sets the next start's number of workers to the available slots, within the plan's
        bounds."""
        least, most = self.plan.least_workers, self._most_workers
        slots = self.spark.slots()
        count = most if slots is None else min(most, max(least, slots))
        self.plan = replace(self.plan, template=roles.template_of({"worker": count}))
        self.meta |= {"cluster_template": self.plan.template, "num_executors": count}
        self.node_ids = list(range(count))
        self._node_tasks = self.spark.nodes(self.node_ids)

    def _scale_up(self) -> None:
        """Called after a checkpoint. Restarts the cluster if there are slots for more workers."""
        count = len(self.node_ids)
        slots = min(self.spark.slots() or 0, self._most_workers)
        if count < slots and self.restarts is not None:
            self.running.scale_up(f"there are slots for {slots} workers instead of {count}")
        elif count < self._most_workers:
            ask_for_slots(self.spark.session, self._most_workers, self.spark.profile)

    def launch(self) -> None:
        """Starts or restarts all nodes; raises as run()."""
        on_commit = self._scale_up if self.plan.least_workers else lambda: None
        observers = Observers(on_commit, self.reports.note)
        timeout_s = self.plan.timeout_s
        self._running = ClusterStart(self.meta, self.spark, timeout_s, self.ledger, observers)
        if self._over:
            self._running.close()
        self.check_not_over()
        self.reports.open()  # may need the delegation tokens forwarded above
        self.reports.begin(self.plan.template)
        beside = sorted(self.plan.beside_driver)
        self.nodes = self.running.start(self._node_tasks, self._body, beside)
        self._pass_on_stop()
        self._files_thread = self._files.serve(self.running, self.nodes)
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
        """Feeds all rows to the nodes; returns when they are consumed.

        Args:
            rows: an RDD, a DataFrame (sent in columns), or a DStream (train() returns at once).
            epochs: how often each row is delivered. Later epochs are replayed from the nodes'
                disks, unless restart=True.
            timeout_s: seconds that a node may take without consuming rows; -1: no limit.
            feed: by name.

        Raises:
            NodeError: a node failed; raised within seconds, with its traceback or signal, and if
                its executor was lost, with the number of rows that were not consumed.
            FeedTimeoutError: a node consumed no rows for `timeout_s`.
            ClusterError: the rows cannot be computed or sent, or the cluster has ended.
            ValueError: a DStream for a cluster with restart=True, a streaming DataFrame, or an
                unknown feed.
            TypeError: `rows` is not an RDD, DataFrame or DStream.
        """
        self._check_takes_rows(feed)
        self.feeds.train(rows, epochs, timeout_s, feed)

    def inference(
        self, rows: Any, timeout_s: float = WAIT_S, feed: str = "input", schema: Any = None
    ) -> Any:
        """The nodes' results: one per row, in order within each partition. Computed lazily.

        Args:
            rows: an RDD or a DataFrame (sent in columns).
            timeout_s: limit of seconds without a result; -1: no limit.
            feed: by name.
            schema: the schema of a DataFrame of results; None: an RDD. Required with Spark Connect.

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
                f"the cluster has ended{why}: call train() and inference() within the `with` "
                "block, or start a new cluster by run()"
            )
        if feed not in self.plan.options.queues:
            known = ", ".join(self.plan.options.queues) or "none"
            raise invalid(f"the cluster has no feed {feed!r}; its feeds: {known}")

    def shutdown(self, ssc: Any = None, grace_s: float = 0.0, timeout_s: float = 259200.0) -> None:
        """Ends the feeds, waits for all main functions to return, and ends the cluster.

        Thread-safe and idempotent: later calls only raise the same failure again.

        Args:
            ssc: a StreamingContext, which is stopped first, once a client has requested a stop.
            grace_s: seconds for ps and evaluator nodes to end by themselves after the workers.
            timeout_s: limit of seconds for the whole shutdown; -1: no limit.

        Raises:
            NodeError: a node failed, possibly before this call.
            ClusterError: the nodes did not end before the deadline; they are killed.
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
        """Waits for all nodes of this start to end."""
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
        """Waits until a client requests a stop, or the cluster fails; then stops the stream."""
        while not self.server.wait_done(1.0) and self.running.watch.failure is None:
            if ssc.awaitTerminationOrTimeout(0.0):
                return
        ssc.stop(stopSparkContext=False, stopGraceFully=self.running.watch.failure is None)

    def check_not_over(self) -> None:
        """Raises ClusterError if end() was called, possibly by another thread."""
        if self._over:
            raise ClusterError("the cluster was ended before it could restart")

    def warn_at_exit(self) -> Self:
        """Makes this program log a warning when it exits, if the cluster has not ended."""
        atexit.register(self._warn_of_end)
        return self

    def _warn_of_end(self) -> None:
        watch = self.running.watch
        if watch.failure is None and not watch.wait_done(self.node_ids, 0.0):
            logger.warning(
                "the program ends while its cluster runs, and kills the nodes: call result() or "
                "shutdown() before the end"
            )

    def end(self) -> None:
        """Ends all remaining processes and jobs; never raises."""
        atexit.unregister(self._warn_of_end)
        self._over = True
        if self._running is not None:
            self._running.close()
        if self._files_thread is not None:
            self._files_thread.join(_FILES_END_S)
        self.server.stop()
        self.spark.release()
        folder = self.plan.options.checkpoint_dir
        known = {"checkpoint_dir": folder} if folder else {}
        self.reports.note_params(known | self.datasets.described())
        self.reports.close(self._error or sys.exception())

    def bytes_read(self) -> tuple[int, int]:
        """Bytes that nodes read from files in remote file systems: (from their own hosts, from
        other hosts). Complete once the cluster has ended.
        """
        return self._files.local, self._files.remote

    def tensorboard_url(self) -> str | None:
        """The URL of the cluster's TensorBoard; None if it has none."""
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
