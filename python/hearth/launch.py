"""The driver's side of a training: one barrier stage of ranks, watched until it ends."""

from __future__ import annotations

import json
import queue
import re
import secrets
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth import preflight
from hearth.rank_task import RESULT_SCHEMA, FileRows, RankSpec, run_rank
from hearth.spark_session import ARROW_CONF

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Event = dict[str, Any]

# After the first failure Spark needs a moment to end the job by itself; then it is cancelled.
_JOB_END_WAIT_S = 1.5
_EVENT_WAIT_S = 0.5


@dataclass(frozen=True)
class Plan:
    """What to launch: the job that all ranks share, and their rows by stream ("train", "test")."""

    world: int
    job: dict[str, Any]
    files: dict[str, FileRows] = field(default_factory=dict)
    frames: dict[str, DataFrame] = field(default_factory=dict)


def run(
    spark: SparkSession, plan: Plan, on_event: Callable[[Event], None], max_restarts: int = 0
) -> list[Event]:
    """Trains, and returns rank 0's validation events followed by its done event.

    `on_event` gets the live events in this thread (none with Spark Connect, whose executors cannot
    reach the client). Every attempt has its own generation, which fences off what is left of the
    one before.

    Raises:
        HearthError: the cluster cannot hold the ranks, or a rank failed `max_restarts` + 1 times.
    """
    from hearth import HearthError

    preflight.check(spark, plan.world)
    generation = 0
    while True:
        try:
            return _Attempt(spark, plan, generation).run(on_event)
        except HearthError:
            if generation >= max_restarts:
                raise
            generation += 1


class _Attempt:
    """One barrier job. The Spark action runs in a thread, so that events can be shown meanwhile."""

    def __init__(self, spark: SparkSession, plan: Plan, generation: int):
        self._spark = spark
        self._plan = plan
        self._generation = generation
        self._token = secrets.token_hex(32)
        self._tag = f"hearth-{uuid.uuid4()}"
        self._inbox: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._coordinator: Any = None
        self._ending = threading.Event()

    def run(self, on_event: Callable[[Event], None]) -> list[Event]:
        endpoint = self._start_coordinator()
        job = threading.Thread(target=self._run_job, args=(endpoint,), name="hearth-job")
        pump = threading.Thread(target=self._pump_events, name="hearth-pump")
        job.start()
        pump.start()
        try:
            return self._watch(on_event)
        finally:
            job.join(_JOB_END_WAIT_S)
            if job.is_alive():
                self._spark.interruptTag(self._tag)
                job.join()
            self._close_coordinator()
            pump.join()

    def _watch(self, on_event: Callable[[Event], None]) -> list[Event]:
        from hearth import HearthError

        result, drained = None, False
        while result is None or not drained:
            kind, value = self._inbox.get()
            if kind == "event":
                on_event(value)
            elif kind == "failure":
                raise HearthError(self._own_words(value))
            elif kind == "error":
                raise self._reason(value) from None
            elif kind == "drained":
                drained = True
            else:  # the last events may still be on their way to the inbox
                result = value
                self._close_coordinator()
        if not result:  # Spark leaves a stage out whose input it knows to be empty
            raise HearthError("there are no rows to train on")
        return result

    def _own_words(self, failure: dict[str, Any]) -> str:
        """The failure's text. Where a rank just went away, its task may know how it died."""
        deadline = time.monotonic() + _JOB_END_WAIT_S
        while failure["lost"]:
            try:
                kind, value = self._inbox.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            reason = rank_error(str(value)) if kind == "error" else None
            if reason is not None and reason.startswith(f"rank {failure['rank']} "):
                return reason
        return failure["message"]

    def _close_coordinator(self) -> None:
        self._ending.set()
        if self._coordinator is not None:
            self._coordinator.close()

    def _reason(self, error: BaseException) -> BaseException:
        """What to tell the user where Spark's job failed with `error`: the first rank's reason."""
        from hearth import HearthError

        failure = self._coordinator.failure() if self._coordinator is not None else None
        text = rank_error(str(error))
        if failure is not None and not failure["lost"]:
            text = failure["message"]
        if text is None:
            return error
        if self._coordinator is not None:  # the other ranks hear it now, not when Spark kills them
            self._coordinator.fail(-1, "driver", text)
        return HearthError(text)

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
        )
        return host, self._coordinator.port()

    def _run_job(self, endpoint: tuple[str, int] | None) -> None:
        plan = self._plan
        spec = RankSpec(
            world=plan.world,
            generation=self._generation,
            token=self._token,
            coordinator=endpoint,
            job=plan.job,
            files=plan.files,
            frames=tuple(plan.frames),
        )
        try:
            self._spark.addTag(self._tag)
            with session_conf(self._spark, ARROW_CONF):
                frame = launch_frame(self._spark, plan)
                stage = frame.mapInArrow(partial(run_rank, spec), RESULT_SCHEMA, barrier=True)
                rows = stage.collect()
            events = [json.loads(row.event) for row in rows]
            self._inbox.put(("result", events))
        except BaseException as error:  # handed to the thread that waits
            self._inbox.put(("error", error))

    def _pump_events(self) -> None:
        """Moves live events into the inbox until a rank failed or the coordinator is closed."""
        while self._coordinator is not None:
            ending = self._ending.is_set()
            event = self._coordinator.next_event(_EVENT_WAIT_S)
            if event is not None:
                value = json.loads(event[1])
                if isinstance(value, dict):
                    self._inbox.put(("event", value))
            elif ending:
                break
            elif (failure := self._coordinator.failure()) is not None:
                self._inbox.put(("failure", failure))
                return
        self._inbox.put(("drained", None))


def rank_error(text: str) -> str | None:
    """The message of the RankError in the text of a Spark exception, if there is one."""
    found = re.search(r"RankError: (.+)", text)
    return found[1].strip() if found else None


@contextmanager
def rank_errors() -> Iterator[None]:
    """Turns the Spark exception around a RankError into a HearthError with its message."""
    from hearth import HearthError

    try:
        yield
    except Exception as error:
        reason = rank_error(str(error))
        if reason is None:
            raise
        raise HearthError(reason) from None


def coordinator_hosts(spark: SparkSession) -> tuple[str, str]:
    """(address to listen on, host that the executors should connect to) of the driver."""
    conf = spark.sparkContext.getConf()
    if spark.sparkContext.master.startswith("local"):
        return "127.0.0.1", "127.0.0.1"
    host = conf.get("spark.driver.host") or socket.gethostname()
    return conf.get("spark.driver.bindAddress") or socket.gethostbyname(host), host


@contextmanager
def session_conf(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    """Sets Spark SQL settings for a while and puts the session's own ones back."""
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def launch_frame(spark: SparkSession, plan: Plan) -> DataFrame:
    """The DataFrame whose partitions are the ranks: the rows to feed, or just one row per rank."""
    from pyspark.sql import functions

    if not plan.frames:
        return spark.range(0, plan.world, 1, plan.world)
    if len(plan.frames) == 1:
        rows = next(iter(plan.frames.values()))
        return rows.repartition(plan.world) if needs_shuffle(rows, plan.world) else rows
    types = {name: frame.schema for name, frame in plan.frames.items()}
    parts = []
    for name, frame in plan.frames.items():
        columns = [
            functions.struct(*frame.columns).alias(other)
            if other == name
            else functions.lit(None).cast(types[other]).alias(other)
            for other in plan.frames
        ]
        parts.append(frame.select(*columns))
    return parts[0].unionByName(parts[1]).repartition(plan.world)


def needs_shuffle(frame: DataFrame, world: int) -> bool:
    """Whether the rows must be shuffled to lie in `world` partitions that a barrier stage accepts.

    Spark refuses barrier stages with a coalesce or limit in them, and asking a plan with exchanges
    for its partitions would run it: both are shuffled without asking.
    """
    if not hasattr(frame, "_jdf"):
        return True
    plan = frame._jdf.queryExecution().executedPlan().toString()
    if any(word in plan for word in ("Exchange", "Coalesce", "Limit", "Union", "Cartesian")):
        return True
    return frame.rdd.getNumPartitions() != world
