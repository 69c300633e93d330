"""The driver's view of a running cluster: who is done, what nodes report, the first failure."""

from __future__ import annotations

import atexit
import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
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
from hearth.spark.job import SparkJob

logger = logging.getLogger("hearth.cluster.watch")  # as docs/seeing.md calls it

_EVENT_WAIT_S = 0.25
_ECHO_WAIT_S = 1.0
# What a node also says that waits in vain.
_NO_PROGRESS = ("warning", "waits", "output")
# In the report of an operation of the collective that waits for others (stall_watch.cc).
_STALLED, _LATE = " has waited for ", " had not arrived "
# A shorter wait for rows is not what others wait for.
_LONG_WAIT_S = 1.0


class ClusterWatch:
    """Owns a thread that takes the coordinator's events until close(). Any thread may wait."""

    def __init__(
        self,
        coordinator: Any,
        template: Mapping[str, Sequence[int]],
        on_failure: Callable[[Failure], None],
        ledger: Any,
    ):
        self._coordinator = coordinator
        self._template = template
        self._on_failure = on_failure
        self._ledger = ledger
        self._changed = threading.Condition()
        self._joined: set[int] = set()
        self._done: set[int] = set()
        self._replayed: dict[str, set[int]] = {}
        self._feed_errors: dict[str, ClusterError] = {}
        self._values: dict[int, list[str]] = {}
        self._failure: Failure | None = None
        # Whether a program of this start of the cluster has made a checkpoint.
        self.committed = False
        # Is called, in the watch's thread, after each checkpoint.
        self.on_commit: Callable[[], None] = lambda: None
        # What nodes ask of files, and say of them: (rank, event), then None at the end.
        self.files: queue.SimpleQueue[tuple[int, dict[str, Any]] | None] = queue.SimpleQueue()
        # By name of a dataset: what is called with each "dataset" event of a node.
        self.datasets: dict[str, Callable[[dict[str, Any]], None]] = {}
        # Takes the "report" and "output" events of a node.
        self.reports: Callable[[int, dict[str, Any]], None] = lambda node, event: None
        self.pace = Pace(template)
        self._starved: dict[int, str] = {}  # nodes that wait for rows while others wait for them
        self._last_event = time.monotonic()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="hearth-cluster", daemon=True)
        self._thread.start()
        # A daemon thread that Python ends inside the core would take the driver down with it.
        atexit.register(self.close)

    @property
    def failure(self) -> Failure | None:
        """The first failure; None as long as all is well."""
        return self._failure

    @property
    def closing(self) -> bool:
        """Whether close() was called."""
        return self._closing

    def check(self) -> None:
        """Raises NodeError where the cluster has failed."""
        if self._failure is not None:
            raise NodeError.of(self._failure)

    def amend(self, text: str) -> None:
        """Adds to what is said of the failure from now on."""
        if self._failure is not None:
            self.conclude(replace(self._failure, text=f"{self._failure.text}; {text}"))

    def conclude(self, failure: Failure) -> None:
        """Says this of the failure from now on."""
        self._failure = failure

    @property
    def joined(self) -> int:
        """How many nodes have come."""
        return len(self._joined)

    def wake(self) -> None:
        """Makes waits look at their conditions again."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, condition: Callable[[], bool], timeout_s: float | None) -> bool:
        """Waits until `condition`, or the cluster has failed; whether `condition` holds."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or condition(), timeout_s)
            return condition()

    def wait_done(self, nodes: Sequence[int], timeout_s: float | None) -> bool:
        """Waits until the main functions of `nodes` have returned; whether they have."""
        return self.wait(lambda: self._done.issuperset(nodes), timeout_s)

    def values(self, node: int) -> list[str]:
        """The pieces that a node that is done has reported of its main function's value."""
        return self._values.get(node, [])

    def follow_values(self, node: int) -> Iterator[str]:
        """The same pieces as they come, until the node is done, or the cluster has failed."""
        given: list[str] = []

        def comes() -> bool:
            return len(self.values(node)) > len(given) or node in self._done

        while self.wait(comes, None) and (news := self.values(node)[len(given) :]):
            given += news
            yield from news

    def wait_stopped(self, timeout_s: float) -> None:
        """Waits until all nodes have ended that did not go away."""
        left = {i for ids in self._template.values() for i in ids}
        if self._failure is not None and self._failure.is_loss:
            left -= {self._failure.rank}
        with self._changed:
            self._changed.wait_for(lambda: self._done >= left, timeout_s)

    @property
    def lost_feeds(self) -> bool:
        """Whether a feed job has failed at some node."""
        return bool(self._feed_errors)

    def feed_error(self, feed: str | None) -> ClusterError | None:
        """What ends that feed without the cluster having failed: a timeout, a node that is done."""
        return None if feed is None else self._feed_errors.get(feed)

    def wait_replayed(self, feed: str, nodes: Sequence[int], timeout_s: float) -> None:
        """Waits until `nodes` have taken all replayed rows of a feed.

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
        """Why some of the nodes will not take the replayed rows, where that is known."""
        gone = sorted(self._done.intersection(nodes) - self._replayed.get(feed, set()))
        if feed in self._feed_errors or not gone:
            return self._feed_errors.get(feed)
        names = ", ".join(roles.name_of(self._template, node) for node in gone)
        return NodeError(
            f"{names}: the main function has returned before the later epochs (it should call "
            "terminate() on its feed to skip the rest)"
        )

    def close(self) -> None:
        """Ends the thread, after the events that came before. Idempotent; one thread calls it."""
        atexit.unregister(self.close)
        if self._coordinator is None:
            return
        self._closing = True
        self._coordinator.close()
        self._thread.join()
        self.files.put(None)
        self._coordinator = None  # py4j never lets go of a stream's function, nor of its cluster

    def _run(self) -> None:
        try:
            self._watch()
        except Exception as error:  # whoever waits must not wait for a thread that is gone
            logger.exception("the driver's connection to the cluster failed")
            with self._changed:
                text = f"the driver could not follow its nodes: {type(error).__name__}: {error}"
                self._failure = self._failure or Failure(text)
                self._changed.notify_all()
            self._tell(self._failure)

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
                    if _LATE in self._failure.text:
                        for starved in self._starved.values():
                            self.amend(starved)
                self._changed.notify_all()
            if news and self._failure is not None:
                self._tell(self._failure)
            if event is None and self._closing:
                return

    def _tell(self, failure: Failure) -> None:
        try:
            self._on_failure(failure)
        except Exception as error:  # such as a SparkContext that was stopped; events must go on
            logger.warning("jobs of a failed cluster could not be cancelled: %s", error)

    def _handle(self, rank: int, text: str) -> None:
        event = json.loads(text)
        if event["event"] not in _NO_PROGRESS:
            self._last_event = time.monotonic()
        if event["event"] in ("done", "stopped"):
            self._done.add(rank)
        elif event["event"] == "joined":
            self._joined.add(rank)
        elif event["event"] == "commit":
            self.committed = True
            self.on_commit()
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
            self.reports(rank, event)
        elif event["event"] in ("files", "files_read"):
            self.files.put((rank, event))
        elif event["event"] == "dataset":
            self.datasets[event["dataset"]](event)
        elif event["event"] == "meeting":
            if not self._closing:
                self._coordinator.broadcast(json.dumps({**event, "op": "meeting"}))
        elif event["event"] == "warning":
            logger.warning("%s: %s", roles.name_of(self._template, rank), event["text"])
            if _STALLED in event["text"] and not self._closing:
                self._coordinator.broadcast(json.dumps({"op": "waits"}))
        elif event["event"] == "waits":
            self._note_wait(rank, event["seconds"])
        elif event["event"] == "replayed":
            self._replayed.setdefault(event["feed"], set()).add(rank)
        elif event["event"] == "feed_error":
            kind = FeedTimeoutError if event["timeout"] else NodeError
            self._feed_errors[event["feed"]] = kind(event["text"])

    def _note_wait(self, rank: int, seconds: float) -> None:
        """Others wait for some rank; this one has waited for rows for so long."""
        if seconds >= _LONG_WAIT_S:
            name = roles.name_of(self._template, rank)
            self._starved[rank] = f"{name} has waited for rows for {seconds:.0f} s: {TAKE_IN_STEP}"
            logger.warning("%s", self._starved[rank])


class ClusterJob(SparkJob):
    """A Spark action that can be left as soon as the cluster fails."""

    def __init__(
        self, spark: Any, watch: ClusterWatch, action: Callable[[], Any], feed: str | None = None
    ):
        """Starts the action on spark_access(); `feed` names the feed whose timeout ends it."""
        self._watch = watch
        self._feed = feed
        super().__init__(spark, action, lambda _: watch.wake())

    def wait(self) -> Any:
        """The action's result; NodeError as soon as the cluster fails, else a ClusterError of what
        the action raised."""
        watch, feed = self._watch, self._feed
        watch.wait(lambda: self.ended or watch.feed_error(feed) is not None, None)
        if (stuck := watch.feed_error(feed)) is not None and watch.failure is None:
            self.cancel()
            raise stuck
        if self.error is not None:
            # It may be the echo of a failure that the rendezvous is about to tell.
            watch.wait(lambda: False, _ECHO_WAIT_S)
        if watch.failure is not None:
            self.cancel()
            raise NodeError.of(watch.failure)
        if self.error is not None:
            raise job_error(self.error) from self.error
        return self.result


class MarkedRdds:
    """RDDs whose jobs, whoever runs them, end with the cluster's failure, past Spark's retries."""

    def __init__(self, sc: Any):
        self._sc = sc
        self._ids: set[int] = set()

    def mark(self, rdd: Any) -> Any:
        """The same RDD in a JVM object of its own, by which its jobs are known."""
        marked = self._sc.union([rdd])
        self._ids.add(marked._jrdd.rdd().id())
        return marked

    def cancel(self, failure: Failure) -> None:
        """Ends their jobs: the exception of the action says why."""
        if not self._ids:
            return
        scala_context = self._sc._jsc.sc()
        tracker, store = self._sc.statusTracker(), scala_context.statusStore()
        for job_id in tracker.getActiveJobsIds():
            job = tracker.getJobInfo(job_id)
            stages = [store.lastStageAttempt(stage) for stage in (job.stageIds if job else ())]
            if any(stage.rddIds().contains(number) for stage in stages for number in self._ids):
                scala_context.cancelJob(job_id, failure.text)
