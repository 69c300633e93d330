"""Writes the rows of a rank's task, and of files, into the rings that its trainer reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hearth.caffe_jobs.trainer_process import Event, stream_of
from hearth.files.local_folders import spill_folder
from hearth.rows.file_reader import STALL_TIMEOUT_S
from hearth.sources.rank_rows import RankRows

if TYPE_CHECKING:
    from pyspark import BarrierTaskContext

# Timeout for writes of streamed rows: a trainer reads them as needed, with long pauses. If it dies,
# the write fails at once.
_TRAINING_S = 30 * 86400.0


@dataclass(frozen=True)
class TaskRank:
    """The rank of a task, and whether the task's host stores the rank's files."""

    rank: int
    is_local: bool = False

    @classmethod
    def of(cls, context: BarrierTaskContext, preferred: Sequence[frozenset[str]]) -> TaskRank:
        """`preferred`: for each rank, the names of the host that stores its files; or empty.

        All tasks of a stage compute the same assignment, which is one to one.
        """
        partition = context.partitionId()
        if not preferred:
            return cls(partition)
        hosts = [info.address.rpartition(":")[0] for info in context.getTaskInfos()]
        rank = ranks_of(hosts, preferred)[partition]
        return cls(rank, hosts[partition] in preferred[rank])


def ranks_of(hosts: Sequence[str], preferred: Sequence[frozenset[str]]) -> list[int]:
    """The rank of each partition: if possible, a rank that prefers the partition's host. Each rank
    is assigned once."""
    free = list(range(len(preferred)))
    ranks: list[int | None] = []
    for host in hosts:
        local = next((rank for rank in free if host in preferred[rank]), None)
        if local is not None:
            free.remove(local)
        ranks.append(local)
    return [free.pop(0) if rank is None else rank for rank in ranks]


class FileFeed:
    """Fills the rings of a rank's streams that are read from files, with a thread for each."""

    def __init__(
        self, files: Mapping[str, RankRows], rings: Mapping[str, Any], task: TaskRank, world: int
    ):
        """`rings`: the rings of all streams, including those of DataFrames."""
        self._files = files
        self._rings = rings
        self._task, self._world = task, world
        self._lock = threading.Lock()
        self._bytes = {True: 0, False: 0}  # bytes read, by whether they are local

    def streams(self) -> dict[str, Any]:
        """The `streams` of the job: each stream's ring, and the folder for spooled rows or the hash
        that identifies streamed rows."""
        rank, streams = self._task.rank, {}
        for turn, (name, ring) in enumerate(self._rings.items()):
            rows = self._files.get(name)
            if rows is not None and rows.seed is not None:
                more = {"files_hash": rows.files_hash(rank, self._world)}
            else:
                more = {"spill_dir": spill_folder(rank + turn)}
            streams[name] = stream_of(ring) | more
        return streams

    def start(self) -> None:
        """Starts feeding the streams whose rows the trainer spools."""
        for name, rows in self._files.items():
            if rows.seed is None:
                self._start(name, rows, self._feed_once)

    def start_epochs(self, event: Event) -> None:
        """Starts feeding streamed rows from the epoch that the trainer requests."""
        name = event["stream"]
        rows, rank = self._files[name], self._task.rank
        epochs = rows.epochs(rank, self._world, event["epoch"], self._count)
        self._start(name, epochs, _feed_epochs)

    def read(self) -> list[Event]:
        """An event with the number of bytes read from remote file systems, if any."""
        local, remote = self._bytes[True], self._bytes[False]
        return (
            [{"event": "files_read", "local": local, "remote": remote}] if local or remote else []
        )

    def _start(self, name: str, rows: Any, feed_rows: Callable[[Any, Any], None]) -> None:
        ring = self._rings[name]
        thread = threading.Thread(target=feed_rows, args=(ring, rows), name="hearth-reader")
        thread.daemon = True
        thread.start()

    def _feed_once(self, ring: Any, rows: Any) -> None:
        def batches() -> Iterator[tuple[str, pa.RecordBatch]]:  # feed() reports its failures
            for batch in rows.read(self._task.rank, self._world, self._count):
                yield "", batch

        feed({"": ring}, batches())

    def _count(self, size: int, local: bool) -> None:
        with self._lock:
            self._bytes[local and self._task.is_local] += size


def _feed_epochs(ring: Any, epochs: Iterator[Iterator[pa.RecordBatch]]) -> None:
    """Writes all epochs, each followed by a mark, until the trainer needs no more rows. Never
    raises; see feed()."""
    try:
        for batches in epochs:
            for batch in batches:
                if not ring.write(batch, _TRAINING_S):
                    return
            if not ring.flush(_TRAINING_S):
                return
    except ConnectionError:
        return
    except Exception as error:  # of any kind: the trainer must be notified
        ring.fail(f"{type(error).__name__}: {error}")


def feed(rings: dict[str, Any], parts: Iterable[tuple[str, pa.RecordBatch]]) -> None:
    """Writes each batch into its stream's ring, then marks the rings as ended.

    Never raises: errors of reading rows are passed to the trainer through the rings. If the trainer
    has ended or needs no more rows, the trainer's own event reports that.
    """
    wanting = dict(rings)
    try:
        for name, batch in parts:
            if name in wanting and not wanting[name].write(batch, STALL_TIMEOUT_S):
                del wanting[name]
            if not wanting:
                return
        for ring in wanting.values():
            ring.end()
    except ConnectionError:
        return
    except Exception as error:  # of any kind: the trainer must be notified
        for ring in rings.values():
            ring.fail(f"{type(error).__name__}: {error}")


def split_streams(
    batches: Iterable[pa.RecordBatch], names: tuple[str, ...]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Splits rows by stream. With two streams, each row has two struct columns, exactly one of them
    not null."""
    for batch in batches:
        if len(names) == 1:
            yield names[0], batch
            continue
        for name in names:
            column = batch.column(name)
            rows = column.filter(column.is_valid())
            if len(rows):
                yield name, pa.RecordBatch.from_struct_array(rows)
