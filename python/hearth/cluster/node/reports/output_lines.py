"""Splits a program's output into lines, with a rate limit, for the driver."""

from __future__ import annotations

import time
from collections.abc import Callable

# A burst, such as a traceback or a model's summary, passes; output of a thousand lines a second
# does not.
_BURST_LINES, _LINES_PER_S = 500, 50.0
_LONGEST = 2000


class Lines:
    """A splitter of one stream's bytes into lines. Not thread-safe.

    A line ended by "\\r", such as a progress bar's, is replaced by the next line in the same read.
    """

    def __init__(self) -> None:
        self._rest = b""

    def add(self, data: bytes) -> list[str]:
        """The lines completed by `data`, without line ends."""
        *whole, self._rest = (self._rest + data).replace(b"\r\n", b"\n").split(b"\n")
        lines = [text for line in whole if (text := _shown(line)) is not None]
        # A progress bar has no line end: returns its state at the last carriage return.
        bar, end, rest = self._rest.rpartition(b"\r")
        if end and bar.strip(b"\r") and (text := _shown(bar)) is not None:
            lines.append(text)
            self._rest = rest
        if len(self._rest) > 4 * _LONGEST:
            lines.append(_text(self._rest))
            self._rest = b""
        return lines

    def end(self) -> list[str]:
        """The remaining text without a line end."""
        rest, self._rest = self._rest, b""
        return [_text(rest)] if rest.strip() else []


def _shown(line: bytes) -> str | None:
    """The text that a terminal shows at the end of a line; None if there are only blanks and
    carriage returns."""
    parts = [part for part in line.split(b"\r") if part.strip()]
    if not parts:
        return None if b"\r" in line else ""
    return _text(parts[-1])


def _text(line: bytes) -> str:
    text = line.decode(errors="replace")
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."


class Limit:
    """The rate limit for lines sent to the driver. Not thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._room, self._at = float(_BURST_LINES), clock()

    def within(self, lines: list[str]) -> list[str]:
        """The first lines within the limit."""
        now = self._clock()
        self._room = min(_BURST_LINES, self._room + (now - self._at) * _LINES_PER_S)
        self._at = now
        taken = lines[: int(self._room)]
        self._room -= len(taken)
        return taken
