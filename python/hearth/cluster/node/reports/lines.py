"""Lines of a program's output, cut and limited for the driver."""

from __future__ import annotations

import time
from collections.abc import Callable

# A burst, as a traceback or a model's summary, comes whole; a program that prints at each step of a
# thousand a second does not.
_BURST_LINES, _LINES_PER_S = 500, 50.0
_LONGEST = 2000


class Lines:
    """Cuts bytes of one stream into lines. One thread uses it.

    A line that "\\r" ends, as of a progress bar, is replaced by the next one that comes with it.
    """

    def __init__(self) -> None:
        self._rest = b""

    def add(self, data: bytes) -> list[str]:
        """The lines that are whole now, without their ends."""
        *whole, self._rest = (self._rest + data).replace(b"\r\n", b"\n").split(b"\n")
        lines = [text for line in whole if (text := _shown(line)) is not None]
        # Progress bars never end their line.
        bar, end, rest = self._rest.rpartition(b"\r")
        if end and bar.strip(b"\r") and (text := _shown(bar)) is not None:
            lines.append(text)
            self._rest = rest
        if len(self._rest) > 4 * _LONGEST:
            lines.append(_text(self._rest))
            self._rest = b""
        return lines

    def end(self) -> list[str]:
        """What no line's end has followed."""
        rest, self._rest = self._rest, b""
        return [_text(rest)] if rest.strip() else []


def _shown(line: bytes) -> str | None:
    """What a terminal shows of a line in the end; None for the rewritten states of a bar alone."""
    parts = [part for part in line.split(b"\r") if part.strip()]
    if not parts:
        return None if b"\r" in line else ""
    return _text(parts[-1])


def _text(line: bytes) -> str:
    text = line.decode(errors="replace")
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."


class Limit:
    """How many lines may go to the driver. One thread uses it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._room, self._at = float(_BURST_LINES), clock()

    def within(self, lines: list[str]) -> list[str]:
        """The first lines for which there is room."""
        now = self._clock()
        self._room = min(_BURST_LINES, self._room + (now - self._at) * _LINES_PER_S)
        self._at = now
        taken = lines[: int(self._room)]
        self._room -= len(taken)
        return taken
