"""Tracks a running cluster in the driver: finished nodes, their reports, the first failure."""

from __future__ import annotations

import atexit
import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hearth.cluster import roles
from hearth.cluster.driver.pace import Pace
from hearth.cluster.errors import (
    TAKE_IN_STEP,
    ClusterError,
    FeedTimeoutError,
    NodeError,
    job_error,
    took_none,
)
from hearth.native.failure import Failure
from hearth.spark.failures import reports_loss
from hearth.spark.job import SparkJob

logger = logging.getLogger("hearth.cluster.watch")  # name documented in docs/seeing.md

_EVENT_WAIT_S = 0.25
# All connections of a lost node end at the same time, but the Spark task that feeds it may report
# the loss before the rendezvous does. Limits the wait for the rendezvous, which may have nothing to
# report.
_CAUSE_WAIT_S = 5.0
# Events that do not count as progress: waiting nodes also send them.
_NO_PROGRESS = ("warning", "waits", "output", "late", "awaits_cause")
# A node that has waited less than this for rows is not the cause of a stall.
_LONG_WAIT_S = 1.0
# Limit of ended nodes that an error names.
_NAMED = 5


@dataclass(frozen=True)
class Observers:
    """Functions that ClusterWatch calls in its thread.

    Attributes:
        on_commit: after each checkpoint of a program.
        on_report: for a node's "report" or "output" event.
    """

    on_commit: Callable[[], None] = lambda: None
    on_report: Callable[[int, dict[str, Any]], None] = lambda node, event: None


class ClusterWatch:
    """The watch over one start of a cluster: a thread reads the coordinator's events until close().
    Waits are thread-safe."""

    def __init__(
        self,
        coordinator: Any,
        template: Mapping[str, Sequence[int]],
        on_failure: Callable[[Failure], None],
        ledger: Any,
        observers: Observers = Observers(),
    ):
        self._coordinator = coordinator
        self._template = template
        self._on_failure = on_failure
        self._ledger = ledger
        self._observers = observers
        self._changed = threading.Condition()
        self._joined: set[int] = set()
        self._done: set[int] = set()
        self._await_cause: list[int] = []  # nodes that have reported a lost rank, in order
        self._replayed: dict[str, set[int]] = {}
        self._feed_errors: dict[str, ClusterError] = {}
        self._values: dict[int, list[str]] = {}
        self._failure: Failure | None = None
        # Whether a program has made a checkpoint since this start of the cluster.
        self.committed = False
        # Requests and reports of nodes about files: (rank, event), then None at the end.
        self.files: queue.SimpleQueue[tuple[int, dict[str, Any]] | None] = queue.SimpleQueue()
        # Handlers of the nodes' "dataset" events by the dataset's name.
        self._datasets: dict[str, Callable[[dict[str, Any]], None]] = {}
        self.pace = Pace(template)
        self._starved: dict[int, str] = {}  # messages about nodes whose wait for rows stalls others
        self._late = False  # an operation timed out before all nodes had arrived
        self._last_event = time.monotonic()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="hearth-cluster", daemon=True)
        self._thread.start()
        # Python's exit during the thread's call to the core would crash the driver.
        atexit.register(self.close)

    @property
    def failure(self) -> Failure | None:
        """The first failure; None without one."""
        return self._failure

    @property
    def closing(self) -> bool:
        """Whether close() was called."""
        return self._closing

    def check(self) -> None:
        """Raises NodeError if the cluster has failed."""
        if self._failure is not None:
            raise NodeError.of(self._failure)

    def amend(self, text: str) -> None:
        """Appends to the failure's text."""
        if self._failure is not None:
            self.conclude(replace(self._failure, text=f"{self._failure.text}; {text}"))

    def conclude(self, failure: Failure) -> None:
        """Replaces the failure's text and fields."""
        self._failure = failure

    @property
    def joined(self) -> int:
        """How many nodes have joined."""
        return len(self._joined)

    def add_dataset(self, name: str, on_event: Callable[[dict[str, Any]], None]) -> None:
        """Passes the nodes' events of this dataset to `on_event`, in the watch's thread."""
        self._datasets[name] = on_event

    def wake(self) -> None:
        """Makes the threads in wait() evaluate their conditions again."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, condition: Callable[[], bool], timeout_s: float | None) -> bool:
        """Waits for `condition` or the cluster's failure; returns whether `condition` holds."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or condition(), timeout_s)
            return condition()

    def await_cause(self, error: BaseException | None = None) -> Failure | None:
        """The cluster's failure, after waiting for the rendezvous to report it; None if there is
        none.

        `error`: the exception of a Spark job, if any; if a lost node cannot have caused the
        exception, this method does not wait.
        """
        text = str(error)
        if error is None or Failure.find(text) is not None or reports_loss(text):
            self.wait(lambda: False, _CAUSE_WAIT_S)
        return self._failure

    def wait_done(self, nodes: Sequence[int], timeout_s: float | None) -> bool:
        """Waits for the main functions of `nodes` to return; returns whether they have."""
        return self.wait(lambda: self._done.issuperset(nodes), timeout_s)

    def values(self, node: int) -> list[str]:
        """The parts, as text, of a node's return value that the node has reported so far."""
        return self._values.get(node, [])

    def follow_values(self, node: int) -> Iterator[str]:
        """Yields the parts of a node's return value as they arrive, until the node is done or the
        cluster has failed."""
        given: list[str] = []

        def comes() -> bool:
            return len(self.values(node)) > len(given) or node in self._done

        while self.wait(comes, None) and (news := self.values(node)[len(given) :]):
            given += news
            yield from news

    def wait_stopped(self, timeout_s: float) -> None:
        """Waits until all nodes but a lost one have ended."""
        left = {i for ids in self._template.values() for i in ids}
        if self._failure is not None and self._failure.is_loss:
            left -= {self._failure.rank}
        with self._changed:
            self._changed.wait_for(lambda: self._done >= left, timeout_s)

    @property
    def lost_feeds(self) -> bool:
        """Whether a node has reported the failure of a feed."""
        return bool(self._feed_errors)

    def feed_error(self, feed: str | None) -> ClusterError | None:
        """The error of a single feed: it timed out, or its node has finished. The cluster itself
        has not failed."""
        return None if feed is None else self._feed_errors.get(feed)

    def wait_replayed(self, feed: str, nodes: Sequence[int], timeout_s: float) -> None:
        """Waits until `nodes` have consumed all replayed rows of a feed.

        Raises:
            NodeError: the cluster failed.
            FeedTimeoutError: no node made progress for `timeout_s`.
        """
        self._last_event = time.monotonic()
        while True:
            left = self._last_event + timeout_s - time.monotonic()
            self.wait(partial(self._ends_replay, feed, nodes), left)
            if self._is_replayed(feed, nodes):
                return
            self.check()
            if (error := self._no_replay(feed, nodes)) is not None:
                raise error
            if time.monotonic() >= self._last_event + timeout_s:
                missing = sorted(set(nodes) - self._replayed.get(feed, set()))
                names = ", ".join(roles.name_of(self._template, node) for node in missing)
                raise FeedTimeoutError(took_none(names, "rows of the later epochs", timeout_s))

    def _is_replayed(self, feed: str, nodes: Sequence[int]) -> bool:
        return self._replayed.get(feed, set()).issuperset(nodes)

    def _ends_replay(self, feed: str, nodes: Sequence[int]) -> bool:
        return self._is_replayed(feed, nodes) or self._no_replay(feed, nodes) is not None

    def _no_replay(self, feed: str, nodes: Sequence[int]) -> ClusterError | None:
        """The reason why some nodes will not consume the replayed rows; None if they may."""
        gone = sorted(self._done.intersection(nodes) - self._replayed.get(feed, set()))
        if feed in self._feed_errors or not gone:
            return self._feed_errors.get(feed)
        names = ", ".join(roles.name_of(self._template, node) for node in gone)
        return NodeError(
            f"{names}: the main function has returned before the later epochs (it should call "
            "terminate() on its feed to skip the rest)"
        )

    def close(self) -> None:
        """Ends the thread after it has handled pending events. Idempotent; not thread-safe."""
        atexit.unregister(self.close)
        if self._coordinator is None:
            return
        self._closing = True
        self._coordinator.close()
        self._thread.join()
        self.files.put(None)
        self._coordinator = None  # py4j retains a stream's function, and so this object

    def _run(self) -> None:
        try:
            self._watch()
        except Exception as error:  # wake all threads that wait for events
            logger.exception("the driver's connection to the cluster failed")
            with self._changed:
                text = f"the driver cannot read its nodes' events: {type(error).__name__}: {error}"
                self._failure = self._failure or Failure(text)
                self._changed.notify_all()
            self._announce(self._failure)

    def _watch(self) -> None:
        while True:
            event = self._coordinator.next_event(_EVENT_WAIT_S)
            failure = self._coordinator.failure()
            news = failure is not None and self._failure is None and not self._closing
            with self._changed:
                if event is not None:
                    self._handle(*event)
                if news:
                    while (earlier := self._coordinator.next_event(0.0)) is not None:
                        self._handle(*earlier)
                    self._failure = roles.node_failure(self._template, failure)
                    if self._late:
                        for starved in self._starved.values():
                            self.amend(starved)
                self._changed.notify_all()
            if news and self._failure is not None:
                self._announce(self._failure)
            if event is None and self._closing:
                return

    def _announce(self, failure: Failure) -> None:
        try:
            self._on_failure(failure)
        except Exception as error:  # e.g. a stopped SparkContext; events must still be handled
            logger.warning("cannot cancel the jobs of a failed cluster: %s", error)

    def _handle(self, rank: int, text: str) -> None:
        event = json.loads(text)
        if event["event"] not in _NO_PROGRESS:
            self._last_event = time.monotonic()
        if event["event"] in ("done", "stopped"):
            self._done.add(rank)
            self._end_cause_waits()
        elif event["event"] == "awaits_cause":
            self._await_cause.append(rank)
            self._end_cause_waits()
        elif event["event"] == "joined":
            self._joined.add(rank)
        elif event["event"] == "commit":
            self.committed = True
            self._observers.on_commit()
        elif event["event"] in ("rows", "safe", "claim", "claim_end"):
            for message in self._ledger.note(rank, text):
                if not self._closing:
                    self._coordinator.broadcast(message)
            if event["event"] == "rows":
                self._starved.pop(rank, None)
                self.pace.note(rank, event)
        elif event["event"] == "value":
            self._values.setdefault(rank, []).append(event["piece"])
        elif event["event"] in ("report", "output"):
            self._observers.on_report(rank, event)
        elif event["event"] in ("files", "files_read"):
            self.files.put((rank, event))
        elif event["event"] == "dataset":
            self._datasets[event["dataset"]](event)
        elif event["event"] == "publish":
            if not self._closing:
                self._coordinator.broadcast(json.dumps({**event, "op": "publish"}))
        elif event["event"] == "warning":
            logger.warning("%s: %s", roles.name_of(self._template, rank), event["text"])
            if event.get("stalled") and not self._closing:
                self._coordinator.broadcast(json.dumps({"op": "waits"}))
        elif event["event"] == "late":
            self._late = True
        elif event["event"] == "waits":
            self._note_wait(rank, event["seconds"])
        elif event["event"] == "replayed":
            self._replayed.setdefault(event["feed"], set()).add(rank)
        elif event["event"] == "feed_error":
            kind = FeedTimeoutError if event["timeout"] else NodeError
            self._feed_errors[event["feed"]] = kind(event["text"])

    def _end_cause_waits(self) -> None:
        """Makes the first waiting node report its own error once every node has ended or waits for
        the cause of a lost rank, because then no node is left that could report the cause."""
        fed = set(roles.fed_ids(self._template))
        if self._closing or not self._await_cause or fed - self._done - set(self._await_cause):
            return
        nodes = sorted(self._done & fed)
        ended = ", ".join(roles.name_of(self._template, node) for node in nodes[:_NAMED])
        if len(nodes) > _NAMED:
            ended += f" and {len(nodes) - _NAMED} more"
        message = {"op": "no_cause", "to": self._await_cause[0], "ended": ended}
        self._coordinator.broadcast(json.dumps(message))

    def _note_wait(self, rank: int, seconds: float) -> None:
        """Records that a node has waited `seconds` for rows while other ranks are stalled."""
        if seconds >= _LONG_WAIT_S:
            name = roles.name_of(self._template, rank)
            self._starved[rank] = f"{name} has waited for rows for {seconds:.0f} s: {TAKE_IN_STEP}"
            logger.warning("%s", self._starved[rank])


class ClusterJob(SparkJob):
    """A Spark action whose wait ends as soon as the cluster fails."""

    def __init__(
        self, spark: Any, watch: ClusterWatch, action: Callable[[], Any], feed: str | None = None
    ):
        """Starts the action. `spark`: a spark_access(); `feed`: the feed whose error ends the
        wait."""
        self._watch = watch
        self._feed = feed
        super().__init__(spark, action, lambda _: watch.wake())

    def wait(self) -> Any:
        """Waits for the action's result. Raises NodeError as soon as the cluster fails,
        ClusterError if the action or its feed fails."""
        watch, feed = self._watch, self._feed
        watch.wait(lambda: self.ended or watch.feed_error(feed) is not None, None)
        if (stuck := watch.feed_error(feed)) is not None and watch.failure is None:
            self.cancel()
            raise stuck
        failure = watch.failure if self.error is None else watch.await_cause(self.error)
        if failure is not None:
            self.cancel()
            raise NodeError.of(failure)
        if self.error is not None:
            raise job_error(self.error) from self.error
        return self.result


class MarkedRdds:
    """RDDs whose jobs are cancelled when the cluster fails, so that Spark does not retry them."""

    def __init__(self, sc: Any):
        self._sc = sc
        self._ids: set[int] = set()

    def mark(self, rdd: Any) -> Any:
        """Returns the RDD as a new RDD, by whose id its jobs are recognized."""
        marked = self._sc.union([rdd])
        self._ids.add(marked._jrdd.rdd().id())
        return marked

    def cancel(self, failure: Failure) -> None:
        """Cancels the RDDs' jobs with the failure's text as the reason."""
        if not self._ids:
            return
        scala_context = self._sc._jsc.sc()
        tracker, store = self._sc.statusTracker(), scala_context.statusStore()
        for job_id in tracker.getActiveJobsIds():
            job = tracker.getJobInfo(job_id)
            stages = [store.lastStageAttempt(stage) for stage in (job.stageIds if job else ())]
            if any(stage.rddIds().contains(number) for stage in stages for number in self._ids):
                scala_context.cancelJob(job_id, failure.text)
