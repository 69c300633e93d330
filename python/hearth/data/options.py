"""How a loader gives its rows."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

# Of numbers that the core takes.
_MOST = 2**63 - 1
UNEVEN = ("repeat", "drop", "weight")
WEIGHT = "row_weight"
MAP_IN = ("threads", "processes")


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
    map_in: str = "threads"
    prefetch: int = 2

    def __post_init__(self) -> None:
        for name in ("batch_size", "seed", "workers", "prefetch"):
            object.__setattr__(self, name, _whole(name, getattr(self, name)))
        twice = [name for name in self.columns or () if (self.columns or ()).count(name) > 1]
        if twice:
            raise ValueError(f"columns names {twice[0]!r} twice: name each column once")
        if self.batch_size < 1:
            raise ValueError(f"batch_size is {self.batch_size}: it must be at least 1")
        if self.uneven not in UNEVEN:
            raise ValueError(f"uneven is {self.uneven!r}: it must be one of {', '.join(UNEVEN)}")
        if self.map_in not in MAP_IN:
            raise ValueError(f"map_in is {self.map_in!r}: it must be one of {', '.join(MAP_IN)}")
        if self.map_in == "processes" and self.workers < 1:
            raise ValueError(
                f"map_in is 'processes' and workers is {self.workers}: give the number of processes"
            )
        if self.shuffle not in (True, False, "full"):
            raise ValueError(f"shuffle is {self.shuffle!r}: it must be True, False or 'full'")

    @property
    def mode(self) -> str:
        """Of the core's order of an epoch."""
        return "full" if self.shuffle == "full" else "window" if self.shuffle else "none"


def _whole(name: str, value: Any) -> int:
    """The number as Python's own, which JSON holds.

    Raises:
        ValueError: it is no whole number that the core takes.
    """
    if not hasattr(type(value), "__index__") or abs(value) > _MOST:
        raise ValueError(f"{name} is {value!r}: it must be a whole number of at most 63 bits")
    return operator.index(value)


def making(
    collate: Callable[[Any], Any] | None, function: Callable[..., Any] | None
) -> Callable[[Any, Any], Any] | None:
    """What makes a batch of (batch, seeds): first `collate`, then function(batch), or
    function(batch, seeds) where it takes two arguments. None where neither is given."""
    if collate is None and function is None:
        return None
    takes_seeds = function is not None and len(inspect.signature(function).parameters) > 1

    def make(batch: Any, seeds: Any) -> Any:
        if collate is not None:
            batch = collate(batch)
        if function is None:
            return batch
        return function(batch, seeds) if takes_seeds else function(batch)

    return make
