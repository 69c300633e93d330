"""Shows training progress: a status line, or Caffe's log lines."""

from __future__ import annotations

import io
import sys
from typing import Any, TextIO

Event = dict[str, Any]


def format_duration(seconds: float) -> str:
    """Formats seconds: `83` -> `1:23`, `4000` -> `1:06:40`."""
    minutes, second = divmod(int(seconds + 0.5), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


def format_progress(event: Event) -> str:
    """Formats a "progress" event as one line."""
    return (
        f"iteration {event['iteration']}/{event['max_iter']}  loss {event['loss']:.4f}  "
        f"lr {event['lr']:.3g}  {event['images_per_s']:,.0f} images/s  "
        f"batch {event['effective_batch']}  ETA {format_duration(event['eta_s'])}"
    )


class Progress:
    """Shows the events of one training; a context manager. Not thread-safe."""

    def __init__(self, stream: TextIO | None = None, first: str = "starting the trainers"):
        """`stream`: the output, by default standard error. `first`: the initial status line, shown
        if the output is a terminal.
        """
        self._first = first
        self._stream = stream or sys.stderr
        self._status: Any = None
        self._interactive = self._stream.isatty()
        self._is_stderr = _is_stderr(self._stream)

    @property
    def interactive(self) -> bool:
        """Whether a status line is updated in place, instead of printing lines."""
        return self._interactive

    def __enter__(self) -> Progress:
        if self._interactive:
            from rich.console import Console

            console = Console(file=self._stream)
            self._status = console.status(self._first)
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, event: Event) -> None:
        """Shows one event of rank 0; unknown kinds are ignored."""
        kind = event.get("event")
        if event.get("on_stderr") and self._is_stderr:
            return  # the rank already wrote the text to this stream
        if kind == "progress" and self._status is not None:
            self._status.update(format_progress(event))
        elif kind == "waiting" and self._status is not None:
            self._status.update(event["text"])
        elif kind == "waiting":
            self._say(event["text"])
        elif kind == "output" and self._status is not None:
            self._status.console.out(event["text"], highlight=False)  # without markup in brackets
        elif kind == "output":
            self._say(event["text"])
        elif kind == "page":
            self._say(f"Watch the training at {event['url']}")
        elif kind == "restart":
            tries = f"{event['generation']} of {event['max_restarts']}"
            self._say(f"{event['reason']}; restarting from the last snapshot ({tries})")
        elif kind == "log" and self._interactive and event["level"] != "I":
            self._say(event["text"])
        elif kind == "log" and not self._interactive:
            print(event["text"], file=self._stream, flush=True)
        elif kind == "validation" and self._status is not None:
            means = ", ".join(f"{k} = {v[0]:.4g}" for k, v in event["outputs"].items() if v)
            self._status.console.print(f"iteration {event['iteration']}, validation: {means}")
        elif kind == "invalid_row":
            self._say(f"skipped {event.get('count', 1)} invalid rows: {event.get('reason', '')}")

    def _say(self, text: str) -> None:
        if self._status is not None:
            self._status.console.print(text)
        else:
            print(text, file=self._stream, flush=True)


def _is_stderr(stream: TextIO) -> bool:
    """Whether child processes write to the stream as their standard error; not so in a notebook."""
    try:
        return stream.fileno() == 2
    except (AttributeError, io.UnsupportedOperation):
        return False
