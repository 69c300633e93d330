"""The position of a loader in its dataset, as a state from which another run can resume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hearth.errors import invalid

VERSION = 2  # version 1 had another order in the first epoch
# Offset between the seeds of the passes of an epoch: odd, so that all differ.
_PASS = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Pass:
    """The part of an epoch that one set of ranks read: the first `taken` positions of each rank's
    order.

    `owners`: the rank of each partition.
    """

    owners: tuple[int, ...]
    taken: int = 0


@dataclass
class Position:
    """An epoch, and its passes: the last one is running; earlier ones ended with their ranks."""

    epoch: int = 0
    passes: list[Pass] = field(default_factory=list)

    def state(self) -> dict[str, Any]:
        """A JSON-serializable state."""
        passes = [{"owners": list(p.owners), "taken": p.taken} for p in self.passes]
        return {"epoch": self.epoch, "passes": passes}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Position:
        """Restores the position from state()."""
        passes = [Pass(tuple(p["owners"]), p["taken"]) for p in state["passes"]]
        return cls(state["epoch"], passes)


def check_state(name: str, state: Any) -> None:
    """Raises ValueError if this is not a state of a loader."""
    if not isinstance(state, Mapping) or state.get("version") != VERSION:
        found = state.get("version") if isinstance(state, Mapping) else type(state).__name__
        raise invalid(
            f"a state of dataset {name!r} has version {found}: pass a value returned by "
            "Loader.state_dict()"
        )
    if (other := state.get("dataset", name)) != name:
        raise invalid(
            f"a state of dataset {other!r} was loaded into a loader of dataset {name!r}: load the "
            "loader's own state (if the dataset was renamed, change the state's 'dataset')"
        )
    passes, known = state.get("passes"), state.get("partitions")
    sound = {
        "seed, shuffle, identity": all(key in state for key in ("seed", "shuffle", "identity")),
        "epoch": _is_count(state.get("epoch")),
        "passes": isinstance(passes, Sequence) and bool(passes) and all(map(_is_pass, passes)),
        "partitions": known is None
        or (isinstance(known, Sequence) and all(map(_is_partition, known))),
    }
    if damaged := [key for key, is_sound in sound.items() if not is_sound]:
        raise invalid(
            f"a state of dataset {name!r} is damaged ({damaged[0]}): pass a value returned by "
            "Loader.state_dict()"
        )


def check_partitions(name: str, state: Mapping[str, Any], partitions: int) -> None:
    """Raises ValueError if the state's dataset has another number of partitions."""
    for had in (len(entry["owners"]) for entry in state["passes"]):
        if had != partitions:
            raise invalid(
                f"dataset {name!r} has changed since its state was saved: it had {had} partitions "
                f"and has {partitions}; provide the same rows, or start the loader from its "
                "beginning"
            )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


def _is_pass(value: Any) -> bool:
    owners = value.get("owners") if isinstance(value, Mapping) else None
    are_ranks = isinstance(owners, Sequence) and all(map(_is_count, owners))
    return are_ranks and _is_count(value.get("taken"))


def _is_partition(value: Any) -> bool:
    is_pair = isinstance(value, Sequence) and len(value) == 2
    return value is None or (is_pair and _is_count(value[0]) and isinstance(value[1], str))


def pass_seed(seed: int, number: int) -> int:
    """The seed of an epoch's pass of this number; the first one uses `seed`."""
    return (seed + number * _PASS) % (1 << 64)


def remaining(
    passes: Sequence[Pass], counts: Sequence[int], seed: int, epoch: int, mode: str
) -> list[np.ndarray]:
    """Which rows of each partition no rank has read: a bool array for each partition.

    Args:
        passes: of the epoch, all of them finished.
        counts: rows of each partition.
        seed, epoch, mode: determine the order in which the ranks read the rows.
    """
    from hearth.native._core import consumed_rows

    left = [np.ones(count, bool) for count in counts]
    for number, done in enumerate(passes):
        for rank in set(done.owners):
            owned = [p for p, owner in enumerate(done.owners) if owner == rank]
            mask = np.concatenate([left[p] for p in owned])
            index = np.flatnonzero(mask)
            count = min(done.taken, len(index))
            taken = consumed_rows([len(index)], pass_seed(seed, number), epoch, mode, count)
            mask[index[taken]] = False
            ends = np.cumsum([len(left[p]) for p in owned])[:-1]
            for partition, part in zip(owned, np.split(mask, ends), strict=True):
                left[partition] = part
    return left


def check_same(
    name: str, before: Sequence[Sequence[Any] | None], rows: Sequence[int], hashes: Sequence[str]
) -> None:
    """Raises ValueError if the partitions (rows, hash) differ from those of the state `before`,
    some of which may be unknown."""
    had = [known[0] for known in before if known is not None]
    if len(before) != len(rows) or (len(had) == len(rows) and sum(had) != sum(rows)):
        raise invalid(
            f"dataset {name!r} has changed since its state was saved: it had {sum(had)} rows in "
            f"{len(before)} partitions and has {sum(rows)} in {len(rows)}; provide the same "
            "rows, or start the loader from its beginning"
        )
    for number, (known, has, now) in enumerate(zip(before, rows, hashes, strict=True)):
        if known is None:
            continue
        count, digest = known
        if count != has or (digest and now and digest != now):
            raise invalid(
                f"dataset {name!r} has changed since its state was saved: partition {number} had "
                f"{count} rows with hash {digest} and has {has} with {now}; provide the same "
                "rows, or start the loader from its beginning"
            )
