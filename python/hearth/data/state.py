"""Creates a loader's state from its position, and checks states before a run resumes from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hearth.data.options import LoaderOptions
from hearth.data.position import Position
from hearth.errors import invalid

if TYPE_CHECKING:
    from hearth.data.dataset import Dataset

_VERSION = 2  # version 1 had another order of rows in the first epoch
_REMEDY = "provide the same rows, or start the loader from its beginning"


def state_of(dataset: Dataset, options: LoaderOptions, position: Position) -> dict[str, Any]:
    """The state of a loader at this position, serializable as JSON."""
    return {
        "version": _VERSION,
        "dataset": dataset.name,
        "identity": dataset.plan.identity,
        "partitions": dataset.known_partitions(),
        "seed": options.seed,
        "shuffle": options.mode,
        **position.state(),
    }


def check_state(dataset: Dataset, options: LoaderOptions, state: Mapping[str, Any]) -> None:
    """Checks that a loader of this dataset can resume from the state.

    Raises:
        ValueError: `state` is not a state, or has other rows, another seed or another shuffle.
        ClusterError: the cluster failed.
    """
    _check_form(dataset.name, state)
    for key, value in (("seed", options.seed), ("shuffle", options.mode)):
        if state[key] != value:
            raise invalid(
                f"the state of dataset {dataset.name!r} was saved with {key} {state[key]!r}, but "
                f"the loader has {value!r}: use the same {key}, because it determines the order "
                "of rows"
            )
    identity = dataset.plan.identity
    try:
        _check_rows(dataset, state)
    except ValueError as error:
        if state["identity"] == identity:
            raise
        raise invalid(f"{error} (saved with {state['identity']}, now {identity})") from error


def _check_form(name: str, state: Any) -> None:
    """Raises ValueError unless `state` is the state of a loader of dataset `name`."""
    if not isinstance(state, Mapping) or state.get("version") != _VERSION:
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


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


def _is_pass(value: Any) -> bool:
    owners = value.get("owners") if isinstance(value, Mapping) else None
    are_ranks = isinstance(owners, Sequence) and all(map(_is_count, owners))
    return are_ranks and _is_count(value.get("taken"))


def _is_partition(value: Any) -> bool:
    is_pair = isinstance(value, Sequence) and len(value) == 2
    return value is None or (is_pair and _is_count(value[0]) and isinstance(value[1], str))


def _check_rows(dataset: Dataset, state: Mapping[str, Any]) -> None:
    """Raises ValueError if the state was saved with other rows.

    Compares the partitions by hash and, unless the state contains every hash, also by the plan's
    identity.
    """
    name, saved = dataset.name, state["partitions"]
    if saved is not None:
        _check_partitions(name, saved, *dataset.totals())
    partitions = len(dataset.plan.owners)
    for former in (len(entry["owners"]) for entry in state["passes"]):
        if former != partitions:
            raise invalid(
                f"dataset {name!r} has changed since its state was saved: it had {former} "
                f"partitions and has {partitions}; {_REMEDY}"
            )
    hashed = saved is not None and all(entry and entry[1] for entry in saved)
    if not hashed and state["identity"] != dataset.plan.identity:
        raise invalid(
            f"dataset {name!r} has changed since its state was saved: its files or columns differ; "
            f"{_REMEDY}"
        )


def _check_partitions(
    name: str, saved: Sequence[Sequence[Any] | None], rows: Sequence[int], hashes: Sequence[str]
) -> None:
    """Raises ValueError if the partitions differ from the saved ones. Each is (rows, hash), or None
    if unknown when the state was saved.
    """
    counted = [partition[0] for partition in saved if partition is not None]
    if len(saved) != len(rows) or (len(counted) == len(rows) and sum(counted) != sum(rows)):
        raise invalid(
            f"dataset {name!r} has changed since its state was saved: it had {sum(counted)} rows "
            f"in {len(saved)} partitions and has {sum(rows)} in {len(rows)}; {_REMEDY}"
        )
    for number, (partition, count, digest) in enumerate(zip(saved, rows, hashes, strict=True)):
        if partition is None:
            continue
        saved_count, saved_digest = partition
        if saved_count != count or (saved_digest and digest and saved_digest != digest):
            raise invalid(
                f"dataset {name!r} has changed since its state was saved: partition {number} had "
                f"{saved_count} rows with hash {saved_digest} and has {count} with {digest}; "
                f"{_REMEDY}"
            )
