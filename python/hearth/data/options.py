"""How a loader gives its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

UNEVEN = ("repeat", "drop", "weight")
WEIGHT = "row_weight"


@dataclass(frozen=True)
class LoaderOptions:
    """How a loader gives its rows; see NodeContext.dataset()."""

    batch_size: int
    columns: tuple[str, ...] | None = None
    shuffle: bool | str = True
    seed: int = 0
    uneven: str = "repeat"
    drop_last: bool = False
    ragged: tuple[str, ...] = ()
    transforms: Mapping[str, Any] = field(default_factory=dict)
    map: Callable[..., Any] | None = None
    workers: int = 0
    prefetch: int = 2

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"batch_size is {self.batch_size}: it must be at least 1")
        if self.uneven not in UNEVEN:
            raise ValueError(f"uneven is {self.uneven!r}: it must be one of {', '.join(UNEVEN)}")
        if self.shuffle not in (True, False, "full"):
            raise ValueError(f"shuffle is {self.shuffle!r}: it must be True, False or 'full'")

    @property
    def mode(self) -> str:
        """Of the core's order of an epoch."""
        return "full" if self.shuffle == "full" else "window" if self.shuffle else "none"
