"""The loader's interface for Keras and tf.data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol


class Batches(Protocol):
    """Batches with a position; implemented by Loader."""

    @property
    def epoch(self) -> int:
        """The epoch number of the running iteration, or of the next one if none runs."""

    def __len__(self) -> int:
        """The number of steps of a complete epoch."""

    def __iter__(self) -> Iterator[Any]:
        """The remaining batches of the epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration start this epoch."""

    def state_dict(self) -> dict[str, Any]:
        """The position after the last delivered batch."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state_dict()."""

    def steps_left(self, state: Mapping[str, Any]) -> int:
        """The number of steps from a state_dict() to the end of its epoch."""
