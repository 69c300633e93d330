"""Options of a loader."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from hearth.errors import invalid

# Range of the core's integers.
_MOST = 2**63 - 1
UNEVEN = ("repeat", "drop", "weight")
WEIGHT = "row_weight"
# Options of PyTorch's DataLoader that are refused here, and what to use instead.
_OF_DATA_LOADER = {"num_workers": "use workers=", "prefetch_factor": "use prefetch="}
MAP_IN = ("threads", "processes")


@dataclass(frozen=True)
class LoaderOptions:
    """Options of a loader; see NodeContext.dataset()."""

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
            raise invalid(f"columns names {twice[0]!r} twice: name each column once")
        if self.batch_size < 1:
            raise invalid(f"batch_size is {self.batch_size}: it must be at least 1")
        if self.uneven not in UNEVEN:
            raise invalid(f"uneven is {self.uneven!r}: it must be one of {', '.join(UNEVEN)}")
        if self.map_in not in MAP_IN:
            raise invalid(f"map_in is {self.map_in!r}: it must be one of {', '.join(MAP_IN)}")
        if self.map_in == "processes" and self.workers < 1:
            raise invalid(
                f"map_in is 'processes' and workers is {self.workers}: set workers to the number "
                "of processes"
            )
        if self.shuffle not in (True, False, "full"):
            raise invalid(f"shuffle is {self.shuffle!r}: it must be True, False or 'full'")

    @property
    def mode(self) -> str:
        """The core's name of the shuffle mode."""
        return "full" if self.shuffle == "full" else "window" if self.shuffle else "none"


def check_known(options: Iterable[str], more: Iterable[str] = ()) -> None:
    """Raises TypeError for a name that is not an option of ctx.dataset() or one of `more`."""
    known = [*(option.name for option in fields(LoaderOptions)), *more]
    for name in options:
        if name not in known:
            hint = _OF_DATA_LOADER.get(name, f"its options are {', '.join(known)}")
            raise TypeError(f"ctx.dataset() has no option {name!r}: {hint}")


def _whole(name: str, value: Any) -> int:
    """Converts the number to a Python int, which JSON can serialize.

    Raises:
        ValueError: `value` is not an integer of at most 63 bits.
    """
    if not hasattr(type(value), "__index__"):
        raise invalid(f"{name} is {value!r}: it must be an integer")
    if abs(value) > _MOST:
        raise invalid(f"{name} is {value!r}: it must be an integer of at most 63 bits")
    return operator.index(value)
