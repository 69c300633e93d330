"""This process's rank among the processes that were started together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hearth.ranks.group import Rendezvous


@dataclass(frozen=True)
class Place:
    """One of `world` ranks. `rendezvous_of` returns the Rendezvous for a group's name, if there are
    several ranks."""

    rank: int
    world: int
    rendezvous_of: Callable[[str], Rendezvous]


_place: Place | None = None


def offer(place: Place | None) -> None:
    """Sets this process's place; called by its starter."""
    global _place
    _place = place


def here() -> Place | None:
    """This process's place; None if it was not started as one of several ranks."""
    return _place
