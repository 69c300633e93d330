"""The interface between a loader and a dataset, whatever the origin of its rows."""

from __future__ import annotations

from typing import Any, Protocol


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


class Dataset(Protocol):
    """The rows of one rank, in partitions. Thread-safe."""

    name: str
    plan: Plan

    def reader(self, seed: int, mode: str) -> Any:
        """The core's EpochReader, or an object with its interface."""

    def columns(self) -> list[str]:
        """The names of the columns; waits for the first rows."""

    def totals(self) -> tuple[list[int], list[str]]:
        """(rows, hash of the rows) of each partition; waits until all are known."""

    def known_partitions(self) -> list[list[Any] | None] | None:
        """[rows, hash] of each partition, None for unknown ones; None if none are known."""

    def check(self) -> None:
        """Raises ClusterError if the cluster has failed."""
