"""Applies a trained net to rows in Spark tasks; each Python worker loads the net once."""

from __future__ import annotations

import atexit
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hearth.caffe_jobs.remote_files import RemoteFiles, RemotePlan
from hearth.caffe_jobs.trainer_process import (
    RankError,
    TrainerProcess,
    compute_threads,
    stream_of,
)
from hearth.files.forwarded_tokens import ForwardedTokens, token_scope
from hearth.rows.file_reader import STALL_TIMEOUT_S
from hearth.rows.invalid_rows import POSITION, Tally

# An idle worker releases the net's memory after this time.
_IDLE_S = 30.0

MEANS_SCHEMA = "position int, blob string, sums array<double>, rows bigint, names array<string>"


@dataclass(frozen=True)
class PredictSpec:
    """Parameters of one features or test job; tasks with the same `key` share a predictor."""

    key: str
    job: dict[str, Any]
    parts: Any = None  # features(): accumulator of invalid rows; None with Spark Connect
    once: bool = False  # one action computes all partitions, so partition ids are unique
    remote: RemotePlan | None = None  # access to the job's remote files
    tokens: ForwardedTokens | None = None  # for HDFS with Kerberos


class Predictor:
    """A trainer process in features or test mode, with a ring for its input and one for its
    output."""

    def __init__(self, spec: PredictSpec, task_cpus: int):
        from hearth.native._core import RingReader, RingWriter

        self.key = spec.key
        self._host = socket.gethostname()
        self._input = RingWriter()
        self._output = RingReader()
        job = {
            **spec.job,
            "rank": 0,
            "world": 1,
            "host": self._host,
            "threads": compute_threads(task_cpus),
            "streams": {"test": stream_of(self._input)},
            "results": stream_of(self._output),
        }
        self._remote = RemoteFiles(job, spec.remote) if spec.remote else None
        try:
            with token_scope(spec.tokens):
                job = self._remote.local_job() if self._remote else job
            self._trainer = TrainerProcess(job, [*self._input.fds(), *self._output.fds()])
        except BaseException:
            self._remove_files()
            raise
        self._input.close_child_fds()
        self._output.close_child_fds()

    def predict(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the results of one partition's rows, in order.

        A separate thread writes the rows, so that both rings may fill up.

        Raises:
            RankError: the trainer failed.
        """
        feed_error: list[BaseException] = []
        feeder = threading.Thread(
            target=self._feed, args=(batches, feed_error), name="hearth-feeder", daemon=True
        )
        feeder.start()
        try:
            while (entry := self._output.next(STALL_TIMEOUT_S))[0] == "batch":
                yield pa.record_batch(entry[1])
        except (RuntimeError, OSError, ValueError) as error:
            if feed_error:
                raise feed_error[0] from None
            raise RankError(self._trainer.failure()) from error
        feeder.join()

    def _feed(self, batches: Iterator[pa.RecordBatch], error: list[BaseException]) -> None:
        try:
            for batch in _noting(batches, error):
                if not self._input.write(batch, STALL_TIMEOUT_S):
                    return
            self._input.flush(STALL_TIMEOUT_S)
        except Exception as caught:  # any error must end predict()'s wait for results
            if error or not isinstance(caught, ConnectionError):
                self._input.fail(f"{type(caught).__name__}: {caught}")
            # Otherwise the trainer has ended, and predict() reports the reason.

    def close(self) -> None:
        """Ends the trainer, closes both rings and removes the temporary files."""
        self._trainer.close()
        self._input.close()
        self._output.close()
        self._remove_files()

    def _remove_files(self) -> None:
        if self._remote is not None:
            self._remote.close()


def _noting(
    batches: Iterator[pa.RecordBatch], error: list[BaseException]
) -> Iterator[pa.RecordBatch]:
    """Yields the batches; if the iterator raises, appends the exception to `error`."""
    try:
        yield from batches
    except Exception as caught:
        error.append(caught)
        raise


class _Cache:
    """Caches this Python worker's predictor for the next task of the same job."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: Predictor | None = None
        self._timer: threading.Timer | None = None

    def take(self, spec: PredictSpec, task_cpus: int) -> Predictor:
        with self._lock:
            predictor, self._idle = self._idle, None
            if self._timer is not None:
                self._timer.cancel()
        if predictor is not None and predictor.key == spec.key:
            return predictor
        if predictor is not None:
            predictor.close()
        return Predictor(spec, task_cpus)

    def give(self, predictor: Predictor) -> None:
        with self._lock:
            self._idle = predictor
            self._timer = threading.Timer(_IDLE_S, self.clear)
            self._timer.daemon = True
            self._timer.start()

    def clear(self) -> None:
        with self._lock:
            predictor, self._idle = self._idle, None
        if predictor is not None:
            predictor.close()


_cache = _Cache()
atexit.register(_cache.clear)


def _results(spec: PredictSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    predictor = _cache.take(spec, context.cpus())
    complete = False
    try:
        yield from predictor.predict(batches)
        complete = True
    finally:  # also if Spark stops reading early
        _cache.give(predictor) if complete else predictor.close()


def features_task(spec: PredictSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The body of features(): for each row, SampleID (string) and one list<float> per blob.

    Without an accumulator, the results end with one row per invalid row, which has no values but
    its index among the invalid rows.
    """
    from pyspark import TaskContext

    blobs = spec.job["features"]
    fields = [pa.field("SampleID", pa.string(), nullable=False)]
    fields += [pa.field(blob, pa.list_(pa.float32()), nullable=False) for blob in blobs]
    if spec.parts is None:
        fields.append(pa.field(POSITION, pa.int64()))
    schema = pa.schema(fields)
    tally = Tally()
    for batch in _results(spec, tally.watch(batches)):
        tally.take(batch.column("SampleID").to_pylist())
        names = ["SampleID", *blobs]
        columns = [batch.column(name).cast(schema.field(name).type) for name in names]
        if spec.parts is None:
            columns.append(pa.nulls(batch.num_rows, pa.int64()))
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
    invalid = tally.result()
    if spec.parts is not None:
        number = f"partition {TaskContext.get().partitionId()}: " if spec.once else ""
        spec.parts.add({number + tally.key(): invalid})
    elif invalid.count:
        names = [*invalid.names, *[""] * (invalid.count - len(invalid.names))]
        empty = pa.array([[]] * invalid.count, pa.list_(pa.float32()))
        columns = [pa.array(names), *[empty] * len(blobs), pa.array(range(invalid.count))]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def means_task(spec: PredictSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The body of test(): for each output blob, the sum of each element over the partition's rows.

    The first result has no blob: its `rows` is the number of all rows, including invalid ones, and
    its `names` lists the first invalid rows.
    """
    sums: dict[str, np.ndarray] = {}
    rows = 0
    tally = Tally()
    for batch in _results(spec, tally.watch(batches)):
        rows += batch.num_rows
        tally.take(batch.column("SampleID").to_pylist())
        for name in batch.schema.names[1:]:
            total = _sum_lists(batch.column(name))
            sums[name] = sums[name] + total if name in sums else total
    invalid = tally.result()
    names = [list(invalid.names), *[[]] * len(sums)]
    yield pa.RecordBatch.from_pydict(
        {
            "position": pa.array(range(-1, len(sums)), pa.int32()),
            "blob": pa.array([None, *sums], pa.string()),
            "sums": pa.array([[], *(t.tolist() for t in sums.values())], pa.list_(pa.float64())),
            "rows": pa.array([invalid.given, *[rows] * len(sums)], pa.int64()),
            "names": pa.array(names, pa.list_(pa.string())),
        }
    )


def _sum_lists(column: pa.ListArray) -> np.ndarray:
    """Element-wise float64 sum of equally long lists: [rows] x list[n] -> [n]."""
    values = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(column), -1).sum(axis=0, dtype=np.float64)
