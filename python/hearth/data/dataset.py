"""The interface between a loader and a dataset, whatever the origin of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np


class Plan(Protocol):
    """Which rank owns each partition, and the rank of this process."""

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
        """A column as an array or a list, owned by the caller; None for types that only pyarrow
        converts."""

    def ids(self) -> np.ndarray:
        """A random seed for each row."""


class RowReader(Protocol):
    """One rank's rows by position in an epoch, such as the core's EpochReader."""

    def start(
        self, epoch: int, remaining: np.ndarray | None = ..., order_seed: int | None = ...
    ) -> None:
        """Moves to an epoch, or to its remaining rows: the ascending indices `remaining`."""

    def take(self, position: int, count: int, wrap: bool) -> BatchRows:
        """`count` rows from `position` on; waits for them. With `wrap` the epoch's first rows
        follow its last one, else there may be fewer."""


class Dataset(Protocol):
    """The rows of one rank, in partitions. Thread-safe."""

    name: str
    plan: Plan

    def reader(self, seed: int, mode: str) -> RowReader:
        """A new reader of this rank's rows, in the order of `seed` and `mode`."""

    def columns(self) -> list[str]:
        """The names of the columns; waits for the first rows."""

    def totals(self) -> tuple[list[int], list[str]]:
        """(rows, hash of the rows) of each partition; waits until all are known."""

    def known_partitions(self) -> list[list[Any] | None] | None:
        """[rows, hash] of each partition, None for unknown ones; None if none are known."""

    def check(self) -> None:
        """Raises ClusterError if the cluster has failed."""
