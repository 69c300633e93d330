"""The interface between a loader and a dataset, which hides where the rows come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np


class Plan(Protocol):
    """The assignment of a dataset's partitions to the ranks that own them."""

    @property
    def owners(self) -> tuple[int, ...]:
        """The rank that owns each partition."""

    @property
    def world(self) -> int:
        """The number of ranks."""

    @property
    def identity(self) -> str:
        """A hash of the partitions and their owners."""

    @property
    def owned(self) -> list[int]:
        """The partitions of this rank, in order."""


class BatchRows(Protocol):
    """Selected rows of one rank, such as the core's SelectedRows."""

    @property
    def count(self) -> int:
        """The number of rows."""

    def gather(self, name: str, *, ragged: bool = ...) -> Any:
        """A column as an array or a list, owned by the caller; None if only pyarrow can convert
        it.
        """

    def ids(self) -> np.ndarray:
        """A random seed for each row."""


class RowReader(Protocol):
    """Reads one rank's rows by position in an epoch, like the core's EpochReader."""

    def start(
        self, epoch: int, remaining: np.ndarray | None = ..., order_seed: int | None = ...
    ) -> None:
        """Moves to an epoch. `remaining`: ascending indices of the rows to read; None: all rows."""

    def take(self, position: int, count: int, wrap: bool) -> BatchRows:
        """Returns `count` rows from `position` on; blocks until they arrive. At the epoch's end it
        wraps around if `wrap` is set, and otherwise returns fewer rows.
        """


class Dataset(Protocol):
    """The rows of one rank, in partitions. Thread-safe."""

    name: str
    plan: Plan

    def reader(self, seed: int, mode: str) -> RowReader:
        """A new reader of this rank's rows, in the order that `seed` and `mode` determine."""

    def columns(self) -> list[str]:
        """The names of the columns; blocks until the first rows arrive."""

    def totals(self) -> tuple[list[int], list[str]]:
        """The row counts and row hashes of all partitions; blocks until all are known."""

    def known_partitions(self) -> list[list[Any] | None] | None:
        """For each partition [rows, hash], or None if unknown; None if all are unknown."""

    def check(self) -> None:
        """Raises ClusterError if the cluster has failed."""
