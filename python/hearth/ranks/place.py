"""This process's place among the processes that were started together with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hearth.ranks.group import Meeting


@dataclass(frozen=True)
class Place:
    """One of `world` ranks. `meeting_of` gives the place for a text by a name, where there are more
    ranks than one."""

    rank: int
    world: int
    meeting_of: Callable[[str], Meeting]


_place: Place | None = None


def offer(place: Place | None) -> None:
    """Who starts this process says what its place is."""
    global _place
    _place = place


def here() -> Place | None:
    """The place; None in a process that nobody started as one of several."""
    return _place
