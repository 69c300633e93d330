"""The program's side of datasets: handles messages from its supervisor and the driver."""

from __future__ import annotations

import base64
import pickle
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hearth.cluster.channel import Message
from hearth.cluster.errors import ClusterError
from hearth.cluster.node.datasets.files import raise_file_limit
from hearth.data.streamed import StreamedDataset
from hearth.errors import invalid
from hearth.rows.carried_types import not_carried

if TYPE_CHECKING:
    from hearth.data.dataset import Dataset

# Time limit for the driver's assignment of partitions.
_PLAN_S = 300.0
# Time limit for the next rows, which Spark may still be computing.
_ROWS_S = 7 * 86400.0


@dataclass(frozen=True)
class Plan:
    """The owner of each partition of a dataset, and this node's rank."""

    rank: int
    world: int
    owners: tuple[int, ...]
    identity: str

    @property
    def owned(self) -> list[int]:
        """This rank's partitions."""
        return [p for p, owner in enumerate(self.owners) if owner == self.rank]


class NodeDataset:
    """A node's view of a dataset. Thread-safe.

    Attributes:
        plan: the owners of partitions.
        rows: the core's DatasetRows of the partitions of this rank.
    """

    def __init__(self, name: str, plan: Plan):
        from hearth.native._core import DatasetRows

        self.name = name
        self.plan = plan
        self.rows = DatasetRows(plan.owned, _ROWS_S)
        self._totals: tuple[list[int], list[str]] | None = None
        self._counted: dict[int, list[Any]] = {}  # [rows, hash] by partition, if some are unknown
        self._changed = threading.Condition()
        self.failure = ""

    def reader(self, seed: int, mode: str) -> Any:
        """The core's EpochReader of this rank's rows."""
        from hearth.native._core import EpochReader

        return EpochReader(self.rows, seed, mode)

    def columns(self) -> list[str]:
        """Names of the columns; waits for the first rows."""
        return [name for name, *_ in self.rows.columns()]

    def totals(self) -> tuple[list[int], list[str]]:
        """(rows, hash) of every partition; waits until all are delivered.

        Raises:
            ClusterError: the cluster failed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._totals is not None or self.failure, _ROWS_S)
        self.check()
        if self._totals is None:
            raise ClusterError(
                f"not all rows of dataset {self.name!r} were delivered before the deadline"
            )
        return self._totals

    def known_partitions(self) -> list[list[Any] | None] | None:
        """[rows, hash] of every partition, with None for each unknown partition. Returns None if no
        partition is known."""
        with self._changed:
            if self._totals is not None:
                return [list(known) for known in zip(*self._totals, strict=True)]
            every = range(len(self.plan.owners))
            return [self._counted.get(p) for p in every] if self._counted else None

    def check(self) -> None:
        """Raises ClusterError if the cluster has failed."""
        if self.failure:
            raise ClusterError(self.failure)

    def note_rows(self, message: Message, fd: int) -> None:
        """Records the committed size of a partition's file; takes ownership of the descriptor."""
        digest = message["hash"]
        self.rows.grow(
            message["partition"], message["attempt"], fd, message["bytes"], message["rows"],
            bool(digest), int(digest or "0", 16),
        )  # fmt: skip

    def note_counted(self, counted: Sequence[Sequence[Any]]) -> None:
        """Records [partition, rows, hash] of delivered partitions."""
        with self._changed:
            self._counted |= {partition: [rows, digest] for partition, rows, digest in counted}

    def note_totals(self, rows: list[int], hashes: list[str]) -> None:
        """Records the totals, once all partitions are delivered."""
        self.rows.set_totals(rows)
        with self._changed:
            self._totals = rows, hashes
            self._changed.notify_all()

    def fail(self, reason: str) -> None:
        """Ends all waits, which raise ClusterError with this reason."""
        with self._changed:
            self.failure = self.failure or reason
            self._changed.notify_all()
        self.rows.fail(reason)


class NodeDatasets:
    """All datasets of a node. open() is thread-safe; only one thread may call handle().

    Attributes:
        names: all names.
    """

    def __init__(self, names: Sequence[str]):
        self.names = list(names)
        self._changed = threading.Condition()
        self._open: dict[str, Any] = {}
        self._early: dict[
            str, list[tuple[Message, int]]
        ] = {}  # reports that arrived before the plan
        self._columns: dict[str, list[str]] = {}
        self._left_out: dict[str, dict[str, str]] = {}  # types of undelivered columns
        self._unfed = False  # the node's role takes no rows
        self._failure = ""

    def open(self, name: str, columns: Sequence[str] | None = None) -> Dataset:
        """The dataset, for reading `columns` (None: all). Waits until the driver has assigned its
        partitions.

        Raises:
            ValueError: an unknown dataset or column, a column of an unsupported type, or this node
                takes no rows.
            ClusterError: the cluster failed.
        """
        if name not in self.names:
            known = ", ".join(self.names) or "none"
            raise invalid(
                f"the cluster has no dataset {name!r} (it has {known}): name it in run(datasets=)"
            )
        with self._changed:
            self._changed.wait_for(
                lambda: name in self._open or self._unfed or self._failure, _PLAN_S
            )
            if name in self._open:
                for column, kind in self._left_out[name].items():
                    if columns is None or column in columns:
                        raise not_carried(name, column, kind)
                self._check_columns(name, columns or ())
                return self._open[name]
        if self._unfed:
            raise invalid(
                f"dataset {name!r} was opened by a node whose role takes no rows (ps, evaluator): "
                "open it in workers"
            )
        reason = self._failure or f"the driver did not plan dataset {name!r} within {_PLAN_S:g} s"
        raise ClusterError(reason)

    def _check_columns(self, name: str, columns: Sequence[str]) -> None:
        known = self._columns[name]
        for column in columns if known else ():
            if column not in known:
                raise invalid(
                    f"dataset {name!r} has no column {column!r}: it has {', '.join(known)} (names "
                    "are case-sensitive)"
                )

    def handle(self, message: Message, fds: Sequence[int]) -> None:
        """Handles a message from the supervisor; takes ownership of its descriptors."""
        name, operation = message["dataset"], message["op"]
        if operation == "dataset_plan":
            self._plan(name, message)
            return
        fd = fds[0] if fds else -1
        with self._changed:
            dataset = self._open.get(name)
            if dataset is None:
                self._early.setdefault(name, []).append((message, fd))
                return
        _note(dataset, message, fd)

    def fail(self, reason: str) -> None:
        """Ends all waits with an error, because the cluster has failed."""
        with self._changed:
            self._failure = self._failure or reason
            self._changed.notify_all()
        for dataset in list(self._open.values()):
            dataset.fail(reason)

    def _plan(self, name: str, message: Message) -> None:
        if message["rank"] is None:
            with self._changed:
                self._unfed = True
                self._changed.notify_all()
            return
        plan = Plan(
            message["rank"], message["world"], tuple(message["owners"]), message["identity"]
        )
        raise_file_limit()
        dataset: Any = NodeDataset(name, plan)
        if text := message.get("source"):  # trusted: the supervisor received it in Spark's closure
            dataset = StreamedDataset(name, plan, pickle.loads(base64.b64decode(text)))
        with self._changed:
            self._open[name] = dataset
            self._columns[name] = message.get("columns", [])
            self._left_out[name] = message.get("left_out", {})
            early = self._early.pop(name, [])
            self._changed.notify_all()
        for earlier, fd in early:
            _note(dataset, earlier, fd)


def _note(dataset: Any, message: Message, fd: int) -> None:
    if isinstance(dataset, StreamedDataset):  # it knows its files' rows without messages
        return
    try:
        if message["op"] == "dataset_rows":
            dataset.note_rows(message, fd)
        elif message["op"] == "dataset_lost":
            dataset.rows.lose(message["partition"], message["attempt"])
        elif message["op"] == "dataset_counted":
            dataset.note_counted(message["counted"])
        elif message["op"] == "dataset_totals":
            dataset.note_totals(message["rows"], message["hashes"])
    except (
        Exception
    ) as error:  # rows that differ from those of the previous attempt, or are corrupt
        dataset.fail(f"dataset {dataset.name!r}: {error}")


def mgr_datasets(mgr: Any) -> NodeDatasets:
    """The datasets of a node's manager.

    Raises:
        ValueError: the node's cluster has no datasets.
    """
    datasets = getattr(mgr, "datasets", None)
    if datasets is None:
        raise invalid("this node has no datasets: name them in run(datasets=)")
    return datasets
