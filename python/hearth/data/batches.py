"""A loader as Keras and tf.data use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol


class Batches(Protocol):
    """Batches with a position; Loader has them."""

    @property
    def epoch(self) -> int:
        """The number of the epoch of the next, or running, iteration."""

    def __len__(self) -> int:
        """Steps of a complete epoch."""

    def __iter__(self) -> Iterator[Any]:
        """The remaining batches of the epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration start this epoch."""

    def state_dict(self) -> dict[str, Any]:
        """The position after the last delivered batch."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state_dict()."""

    def steps_left(self, state: Mapping[str, Any]) -> int:
        """Steps until the end of the epoch of a state_dict()."""
