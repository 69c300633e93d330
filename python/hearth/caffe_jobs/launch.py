"""Launches the ranks of a training as one barrier stage, and watches it until it ends."""

from __future__ import annotations

import json
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.caffe_jobs.attempt_messages import Kind, Message
from hearth.caffe_jobs.live_events import LiveEvents
from hearth.caffe_jobs.plan import Plan, assign_files, pinned
from hearth.caffe_jobs.rank_task import RankSpec, result_schema, run_rank
from hearth.caffe_jobs.run_name import run_name
from hearth.errors import HearthError
from hearth.native.failure import Failure
from hearth.rows.rank_rows import launch_conf, rank_rows
from hearth.spark import preflight
from hearth.spark.access import spark_access
from hearth.spark.addresses import coordinator_hosts
from hearth.spark.failures import loss_line, reports_loss, wrong_python
from hearth.spark.job import SparkJob
from hearth.spark.links import link_environment
from hearth.spark.ports import COORDINATOR, coordinator_ports, ports_of
from hearth.spark.profiles import mapped, task_profile
from hearth.spark.restarts import Lost, NotReplaced, Restarts
from hearth.spark.session_conf import session_conf
from hearth.spark.silent_executors import replace_silent
from hearth.spark.slots import SlotWait, is_local
from hearth.spark.token_forwarder import forward_tokens

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Event = dict[str, Any]

# Spark usually ends the job soon after the first failure; otherwise it is cancelled after this
# time.
_JOB_END_WAIT_S = 1.5
# The rendezvous notices at once that a rank has disconnected. Only the rank's task knows how the
# process ended, and Spark reports the reason when the job ends: 0.02 to 0.3 s later for killed
# trainers and executors of a local cluster. If a host loses power, Spark may report nothing within
# this time; the error then only says that the rank was lost.
_TASK_FAILURE_WAIT_S = 15.0
_EVENT_WAIT_S = 5.0
# How long Spark may take to return the result once all ranks are done.
_RESULT_WAIT_S = 10.0
# Interval at which the slots of ranks that have not started are checked.
_SLOTS_WAIT_S = 5.0


@dataclass(frozen=True)
class Rows:
    """A run's rows, one partition per rank, and the settings under which each attempt computes the
    same partitions."""

    frame: DataFrame
    conf: dict[str, str]


def run(
    spark: SparkSession, plan: Plan, on_event: Callable[[Event], None], max_restarts: int = 0
) -> Event:
    """Trains, and returns rank 0's done event, which holds all validations of the run.

    `on_event` is called in this thread with each event as it arrives. With Spark Connect, if rank
    0's host cannot reach the client, events arrive after the trainers are done, each with its
    `seconds`. If a process is lost, all ranks are launched again, up to `max_restarts` times, and
    resume from the run's last snapshot; a "restart" event reports it. Each attempt has a new
    generation number, so the coordinator rejects processes that remain from earlier attempts. A
    driver that YARN has restarted also resumes from the run's last snapshot, and logs a warning.

    Raises:
        HearthError: the cluster cannot hold the ranks, a rank reported an error, or one was lost
            `max_restarts` + 1 times.
    """
    name = run_name(spark, plan.job)
    plan = replace(
        plan,
        job={**plan.job, "run": name.text, "datasets": plan.datasets},
        files=pinned(spark, plan.files),
        first_generation=name.first_generation(max_restarts),
    )
    profile = task_profile(spark.conf.get)
    preflight.check(spark, plan.world, partial(_report_waiting, on_event), profile)
    if warning := preflight.unused_cores(spark, profile):
        on_event(_log("W", warning))
    if name.attempt > 1:
        text = (
            f"attempt {name.attempt} of this application, whose driver YARN has restarted: "
            "the training resumes from its last snapshot, if there is one"
        )
        on_event(_log("W", text))
    plan = assign_files(spark, plan, on_event)
    conf = launch_conf(spark, plan.world, plan.frames.values())
    with session_conf(spark, conf):  # set once, so that all attempts use the same rows
        rows = rank_rows(spark, plan.frames, plan.world)
    return _generations(spark, plan, Rows(rows, conf), on_event, max_restarts)


def _generations(
    spark: SparkSession,
    plan: Plan,
    rows: Rows,
    on_event: Callable[[Event], None],
    max_restarts: int,
) -> Event:
    """Runs attempts until one ends without a lost rank."""
    notify = partial(_report_waiting, on_event)
    profile = task_profile(spark.conf.get)
    restarts = Restarts(spark, plan.world, max_restarts, notify, profile)
    last: list[_Attempt] = []

    def attempt(generation: int) -> Event:
        last[:] = [_Attempt(spark, plan, rows, plan.first_generation + generation)]
        return last[0].run(on_event)

    def on_restart(lost: Lost) -> None:
        restart = {"generation": restarts.count, "max_restarts": max_restarts}
        on_event({"event": "restart", "reason": str(lost), **restart})
        last[0].replace_silent(unless_they_answer=False)

    try:
        return restarts.run(attempt, on_restart)
    except Lost as lost:
        if lost.failure.silent:
            last[0].replace_silent(unless_they_answer=True)
        raise lost.failure.error() from lost.__cause__
    except NotReplaced as error:
        raise HearthError(f"{error.lost}. The training is not restarted: {error}") from None


def _log(level: str, text: str) -> Event:
    return {"event": "log", "level": level, "text": text}


def _report_waiting(on_event: Callable[[Event], None], line: str) -> None:
    on_event({"event": "waiting", "text": line})


class _Attempt:
    """One attempt of a training: a barrier job, run in a thread while run()'s thread passes on
    events."""

    def __init__(self, spark: SparkSession, plan: Plan, rows: Rows, generation: int):
        self._spark = spark
        self._access = spark_access(spark)
        self._plan = plan
        self._rows = rows
        self._generation = generation
        self._token = secrets.token_hex(32)
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._coordinator: Any = None
        self._live: LiveEvents | None = None  # set only with Spark Connect
        # Local mode: the executor is this process's JVM, so ranks share its standard error.
        self._local = is_local(spark.conf.get("spark.master", ""))
        self._job: SparkJob | None = None
        self._ending = threading.Event()
        self._done: Event | None = None  # rank 0's "done" event, once all ranks are done
        self._started = False  # a message has arrived: ranks run, or the job has ended
        self._overdue = False  # all ranks are done, but Spark has returned no result

    def run(self, on_event: Callable[[Event], None]) -> Event:
        # session_conf() may wait for concurrent trainings; it does so in this thread, so that
        # Ctrl-C ends the wait.
        with session_conf(self._spark, self._rows.conf):
            return self._run(on_event)

    def _run(self, on_event: Callable[[Event], None]) -> Event:
        endpoint = self._start_coordinator()
        if endpoint is None:
            self._started = True  # with Spark Connect the start of ranks is not reported
            self._live = LiveEvents(self._access)
        job = SparkJob(self._access, partial(self._act, endpoint), self._put_end)
        self._job = job
        pump = threading.Thread(target=self._pump_events, name="hearth-pump")
        pump.start()
        try:
            return self._watch(on_event)
        except KeyboardInterrupt:
            job.cancel()
            raise
        finally:
            job.end(_JOB_END_WAIT_S)
            self._close_coordinator()
            pump.join()
            if self._overdue:
                self.replace_silent(unless_they_answer=True)

    def replace_silent(self, unless_they_answer: bool) -> None:
        """Makes Spark replace the executors on which tasks of this ended attempt remain, so that
        neither a restart nor the session's end waits for lost hosts."""
        replace_silent(self._spark, self._job.tag, unless_they_answer=unless_they_answer)

    def _watch(self, on_event: Callable[[Event], None]) -> Event:
        result, drained = None, False
        notify = partial(_report_waiting, on_event)
        slots = SlotWait(self._spark, self._plan.world, notify, profile=self._access.profile)
        while result is None or not drained:
            message = self._next(slots)
            kind, value = message.kind, message.value
            if kind is Kind.EVENT:
                on_event(value)
            elif kind is Kind.FAILURE:
                failure = self._task_failure(value)
                raise Lost(failure) if failure.is_loss else failure.error()
            elif kind is Kind.ERROR:
                reason = self._reason(value)
                raise reason from reason.__cause__
            elif kind is Kind.DRAINED:
                drained = True
            elif kind is Kind.FINISHED:
                self._done = value
            else:  # the last events may not have reached the inbox yet
                result = value
                self._close_coordinator()
        if not result:  # Spark skips a stage whose input is known to be empty
            raise HearthError("there are no rows to train on")
        if self._live is not None:
            for event in self._live.missed(result[0].pop("events", ())):
                on_event(event)
        if result[0].get("event") == "error":
            raise Lost(Failure.of(result[0]))
        return result[0]

    def _next(self, slots: SlotWait) -> Message:
        """The next message. Raises HearthError if ranks that have not started lack slots.

        Spark checks the slots of a barrier stage once, and then waits for them forever. It also
        waits forever for the result if the host of a finished rank drops off the network.
        """
        while not self._started:
            try:
                message = self._inbox.get(timeout=_SLOTS_WAIT_S)
            except queue.Empty:
                slots.look()
            else:
                self._started = True
                return message
        # No limit with remote files: storing them after all ranks are done may take longer.
        ends_now = self._plan.remote is None and not self._ending.is_set()
        late = self._done is not None and ends_now
        try:
            return self._inbox.get(timeout=_RESULT_WAIT_S if late else None)
        except queue.Empty:
            self._overdue = True
            return Message(Kind.RESULT, [self._done])

    def _task_failure(self, failure: dict[str, Any]) -> Failure:
        """The failure to report. For a lost rank, waits for the error of its task, which has more
        detail and ends the job."""
        known = Failure.of_rendezvous(failure)
        deadline = time.monotonic() + _TASK_FAILURE_WAIT_S
        while known.closed:
            try:
                message = self._inbox.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            if message.kind is Kind.ERROR:  # the job has ended, so no more events follow
                return known.explained_by(Failure.find(str(message.value)))
        return known

    def _close_coordinator(self) -> None:
        self._ending.set()
        for listening in (self._coordinator, self._live):
            if listening is not None:
                listening.close()

    def _reason(self, error: BaseException) -> BaseException:
        """The exception to raise after Spark's job failed: the first failed rank's, if known."""
        first = self._coordinator.failure() if self._coordinator is not None else None
        known = Failure.of_rendezvous(first) if first is not None else None
        if known is not None and not known.is_loss:
            return known.error()
        text, cause = str(error), None
        reported = Failure.find(text)
        if reported is None and (python := wrong_python(text)):
            reported, cause = Failure(python, code="invalid_argument"), error
        elif reported is None and reports_loss(text):
            reported, cause = Failure(loss_line(text), code="unavailable", lost=True), error
        if self._coordinator is not None:  # end the other ranks before Spark kills them
            self._coordinator.fail(
                -1, "driver", reported.text if reported else "Spark's job failed"
            )
        if reported is None:
            return error
        reported = known.explained_by(reported) if known is not None else reported
        if not reported.is_loss:
            return reported.error()
        reason = Lost(reported)
        reason.__cause__ = cause
        return reason

    def _start_coordinator(self) -> tuple[str, int] | None:
        if not hasattr(self._spark, "_jsc"):
            return None
        from hearth.native._core import Coordinator

        bind_host, host = coordinator_hosts(self._spark)
        self._coordinator = Coordinator(
            world=self._plan.world,
            token=self._token,
            generation=self._generation,
            bind_host=bind_host,
            **coordinator_ports(ports_of(self._spark.conf.get, COORDINATOR), COORDINATOR),
        )
        return host, self._coordinator.port()

    def _act(self, endpoint: tuple[str, int] | None) -> list[Event]:
        """The Spark action: runs all ranks until they end. Returns rank 0's last event, if any."""
        plan = self._plan
        spec = RankSpec(
            world=plan.world,
            generation=self._generation,
            token=self._token,
            coordinator=endpoint,
            job=plan.job,
            files=plan.files,
            frames=tuple(plan.frames),
            remote=plan.remote,
            hosts=plan.hosts,
            ports=tuple(ports_of(self._spark.conf.get, COORDINATOR)),
            links=link_environment(self._spark.conf.get),
            listener=self._live.listener if self._live is not None else None,
            tokens=forward_tokens(self._spark) if plan.remote or plan.files else None,
        )
        task = partial(run_rank, spec)
        asked = mapped(self._spark, self._access.profile)
        stage = self._rows.frame.mapInArrow(task, result_schema(), barrier=True, **asked)
        events = [json.loads(row.event) for row in stage.collect()]
        if read := [event for event in events if event.get("event") == "files_read"]:
            local, remote = (sum(event[key] for event in read) for key in ("local", "remote"))
            total = local + remote
            text = f"ranks read {total} bytes of files, {100 * local / total:.0f} % of"
            self._inbox.put(Message(Kind.EVENT, _log("I", f"{text} them on their own hosts")))
        return [event for event in events if event not in read]

    def _put_end(self, job: SparkJob) -> None:
        failed = job.error is not None
        message = Message(Kind.ERROR, job.error) if failed else Message(Kind.RESULT, job.result)
        self._inbox.put(message)

    def _pump_events(self) -> None:
        """Moves events into the inbox until a rank fails or the coordinator is closed."""
        done: Event | None = None
        if self._live is not None:
            self._live.take_all(lambda event: self._inbox.put(Message(Kind.EVENT, event)))
        while self._coordinator is not None:
            ending = self._ending.is_set()
            event = self._coordinator.next_event(_EVENT_WAIT_S)
            self._report_dropped(self._coordinator.take_dropped_log_lines())
            if event is not None:
                value = json.loads(event[1])
                ended = isinstance(value, dict) and value.get("event") == "done"
                if event[0] == 0 and ended:
                    done = value
                if isinstance(value, dict) and (event[0] == 0 or not ended):
                    if self._local and value.get("event") == "log":
                        value["on_stderr"] = True
                    self._inbox.put(Message(Kind.EVENT, value))
            elif ending:
                break
            elif (failure := self._coordinator.failure()) is not None:
                self._inbox.put(Message(Kind.FAILURE, failure))
                return
            elif done is not None and self._coordinator.finished():
                self._inbox.put(Message(Kind.FINISHED, done))
                done = None
        self._inbox.put(Message(Kind.DRAINED))

    def _report_dropped(self, lines: int) -> None:
        if lines:
            text = f"{lines} log lines arrived too fast to be shown here; see the executors' logs"
            self._inbox.put(Message(Kind.EVENT, _log("W", text)))


@contextmanager
def rank_errors() -> Iterator[None]:
    """Converts a Spark exception caused by a RankError into a HearthError with that error's
    fields."""
    try:
        yield
    except Exception as error:
        failure = Failure.find(str(error))
        if failure is None and (python := wrong_python(str(error))):
            failure = Failure(python, code="invalid_argument")
        if failure is None:
            raise
        raise failure.error() from None
