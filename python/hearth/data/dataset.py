"""What a loader needs of a dataset, however its rows come."""

from __future__ import annotations

from typing import Any, Protocol


class Plan(Protocol):
    """Which rank owns each partition, and the rank that asks."""

    @property
    def owners(self) -> tuple[int, ...]: ...

    @property
    def world(self) -> int: ...

    @property
    def identity(self) -> str: ...

    @property
    def owned(self) -> list[int]: ...


class Dataset(Protocol):
    """The rows of one rank, in partitions. Any thread may use it."""

    name: str
    plan: Plan

    def reader(self, seed: int, mode: str) -> Any:
        """The core's EpochReader, or something like it."""

    def columns(self) -> list[str]:
        """Their names; waits for the first rows."""

    def totals(self) -> tuple[list[int], list[str]]:
        """(rows, hash of the rows) of every partition; waits for them."""

    def known_partitions(self) -> list[list[Any] | None] | None:
        """[rows, hash] of every partition, None for those that are not known yet; None where none
        is."""

    def check(self) -> None:
        """Raises ClusterError where the cluster has failed."""
