"""This process's rank among the processes that were started together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hearth.ranks.group import Rendezvous


@dataclass(frozen=True)
class Place:
    """The rank of this process, one of `world` ranks. `rendezvous_of` returns the Rendezvous for a
    group's name, if there are several ranks."""

    rank: int
    world: int
    rendezvous_of: Callable[[str], Rendezvous]


def alone() -> Place:
    """The Place of a process that is the only rank."""
    no_others = Rendezvous(publish=lambda _: None, read=str, withdraw=lambda: None)
    return Place(0, 1, lambda _: no_others)


def by_store(store: Any, name: str, key: str, host: str = "") -> Rendezvous:
    """A Rendezvous through a node's KeyValueStore, in which each name is used once."""
    return Rendezvous(
        publish=lambda text: store.publish(name, text),
        read=lambda: store.read(name),
        withdraw=lambda: None,
        host=host,
        key=key,
    )


_place: Place | None = None


def offer(place: Place | None) -> None:
    """Sets this process's Place; called by the code that starts the program."""
    global _place
    _place = place


def here() -> Place | None:
    """This process's Place; None if the process was not started as one of several ranks."""
    return _place
