"""Finds invalid rows of a prediction in tasks, and reports them in the driver."""

from __future__ import annotations

import atexit
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

NAMED_ROWS = 10
# Spark Connect has no accumulators, so a task also yields its invalid rows, numbered in this
# column. Spark observes the numbered rows, which are then filtered out.
POSITION = "hearth_invalid_row"
# Partitions end at different times. A report waits until no partition has ended for this long.
_QUIET_S = 0.5


@dataclass(frozen=True)
class InvalidRows:
    """A count of invalid rows: `count` of `given` rows; `names` has the names of the first few."""

    given: int = 0
    count: int = 0
    names: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """The row counts as text, for a message."""
        return f"{self.count} of {self.given} rows cannot be used"

    @property
    def named(self) -> str:
        """The names as text, with "..." if there are more."""
        return ", ".join([*self.names, *["..."] * (self.count > len(self.names))])


def add_up(parts: Iterable[InvalidRows]) -> InvalidRows:
    """The sum of all parts."""
    parts = list(parts)
    names = [name for part in parts for name in part.names]
    return InvalidRows(
        sum(part.given for part in parts),
        sum(part.count for part in parts),
        tuple(names[:NAMED_ROWS]),
    )


class Tally:
    """Finds a predictor's input rows without an output row; both are in the same order.

    `watch` runs in the feeder's thread, `take` in another.
    """

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()
        self._names: list[str] = []
        self._passed_over = 0
        self._given = self._used = 0
        self._first = ""

    def watch(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the batches unchanged, and records their rows' names."""
        for batch in batches:
            names = _names_of(batch)
            if not self._given and names:
                self._first = names[0]
            self._given += batch.num_rows
            self._waiting.extend(names)
            yield batch

    def take(self, names: Iterable[str]) -> None:
        """Records output rows; the input rows that were skipped before them are invalid."""
        for name in names:
            self._used += 1
            while self._waiting and (given := self._waiting.popleft()) != name:
                self._pass_over(given)

    def result(self) -> InvalidRows:
        """The number and names of the invalid rows. Call it after all output rows were recorded."""
        while self._waiting:
            self._pass_over(self._waiting.popleft())
        count = self._given - self._used
        # If the trainer formats the names' type differently, no name matches; then omit all names.
        names = self._names if self._passed_over == count else []
        return InvalidRows(self._given, count, tuple(names))

    def key(self) -> str:
        """Identifies the partition by its rows, so a recomputed partition has the same key."""
        return f"{self._given} from {self._first}"

    def _pass_over(self, name: str) -> None:
        self._passed_over += 1
        if len(self._names) < NAMED_ROWS:
            self._names.append(name)


def _names_of(batch: pa.RecordBatch) -> list[str]:
    for column in ("id", "SampleID"):
        if column in batch.schema.names:
            return [str(name) for name in batch.column(column).to_pylist()]
    return [""] * batch.num_rows


class PartsParam:
    """An accumulator of {partition: InvalidRows}, which counts a recomputed partition only once."""

    def __init__(self, on_change: Callable[[], None] | None = None):
        self._on_change = on_change

    def zero(self, value: dict[str, InvalidRows]) -> dict[str, InvalidRows]:
        """The initial value, without partitions."""
        return {}

    def addInPlace(
        self, value: dict[str, InvalidRows], more: dict[str, InvalidRows]
    ) -> dict[str, InvalidRows]:
        """Adds the counts of more partitions to `value`, and returns it."""
        value.update(more)
        if self._on_change is not None:
            self._on_change()
        return value

    def __reduce__(self) -> tuple[Any, ...]:  # tasks get a copy without `notify`
        return PartsParam, ()


class Report:
    """Collects a lazily computed frame's invalid rows in the driver; calls `notify` on changes.

    `notify` is called in other threads, shortly after the last partition with invalid rows, or when
    the program exits.
    """

    def __init__(self, spark: SparkSession, notify: Callable[[InvalidRows], None]):
        self._notify = notify
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._reported = InvalidRows()
        self._observed = InvalidRows()
        self.parts: Any = None  # the tasks' accumulator; None with Spark Connect
        self._observation: Any = None  # only with Spark Connect 4.0 or later
        if hasattr(spark, "_jsc"):
            self.parts = spark.sparkContext.accumulator({}, PartsParam(self._notify_soon))
        else:
            self._observation = _observation(self._on_metrics)
        if not self.counts:
            logger.warning("Spark Connect 3.5 cannot count invalid rows, which are dropped")

    @property
    def counts(self) -> bool:
        """Whether rows can be counted: false with Spark Connect 3.5, which has no observations."""
        return self.parts is not None or self._observation is not None

    def found(self) -> InvalidRows:
        """The invalid rows found by actions so far."""
        if self.parts is None:
            return self._observed
        return add_up(tuple(self.parts.value.values()))

    def attach(self, frame: DataFrame, names: list[str]) -> DataFrame:
        """With Spark Connect: observes and drops invalid rows, and selects the columns `names`."""
        if self.parts is not None:
            return frame
        from pyspark.sql import functions as f

        position = f.col(POSITION)
        named = [
            f.min(f.when(position == slot, f.col("SampleID"))).alias(f"name{slot}")
            for slot in range(NAMED_ROWS)
        ]
        if self._observation is not None:
            counts = f.count(f.lit(1)).alias("given"), f.count(position).alias("count")
            frame = frame.observe(self._observation, *counts, *named)
        return frame.where(position.isNull()).select(*(f.col(f"`{name}`") for name in names))

    def mute(self) -> InvalidRows:
        """Returns the invalid rows found so far, which the caller reports instead of `notify`."""
        with self._lock:
            self._reported = self.found()
            return self._reported

    def _on_metrics(self, metrics: dict[str, Any]) -> None:
        names = [metrics.get(f"name{slot}") for slot in range(NAMED_ROWS)]
        self._observed = InvalidRows(
            metrics.get("given", 0), metrics.get("count", 0), tuple(n for n in names if n)
        )
        self._notify_soon()

    def _notify_soon(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            else:
                atexit.register(self._notify_now)
            self._timer = threading.Timer(_QUIET_S, self._notify_now)
            self._timer.daemon = True
            self._timer.start()

    def _notify_now(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                atexit.unregister(self._notify_now)
            self._timer = None
            found = self.found()
            changed = found.count > 0 and found != self._reported
            self._reported = found
        if changed:
            self._notify(found)


def _observation(on_metrics: Callable[[dict[str, Any]], None]) -> Any:
    """A Spark Connect observation that calls `on_metrics` after each action; None in Spark 3.5."""
    try:
        from pyspark.sql.connect.observation import Observation
    except ImportError:
        return None

    class Metrics(dict[str, Any]):
        def update(self, *args: Any, **kwargs: Any) -> None:
            super().update(*args, **kwargs)
            on_metrics(self)

    class NotifyingObservation(Observation):
        def _on(self, df: Any, *exprs: Any) -> Any:
            observed = super()._on(df, *exprs)
            self._result = Metrics()
            return observed

    return NotifyingObservation()
