"""What a program does and when, for the timeline that HEARTH_TIMELINE=FOLDER asks for.

with span("validate"):
    ...
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def span(name: str) -> Iterator[None]:
    """The block is an event of that name on this thread's track; nothing where none is written."""
    from hearth.native import _core

    if not _core.timeline_is_on():
        yield
        return
    begin = time.monotonic()
    try:
        yield
    finally:
        _core.timeline_add(name, begin, time.monotonic())
