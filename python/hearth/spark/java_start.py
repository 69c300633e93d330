"""The JVM behind a Spark session, while it starts: nobody else knows of it yet."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# A JVM that is told to end removes its folders first.
_JAVA_END_WAIT_S = 8.0


@contextmanager
def undone_by_interrupts() -> Iterator[None]:
    """Ends the JVM that a start has begun, where Ctrl-C interrupts it.

    Left alone it would go on starting in a folder that is being removed, and complain of it.
    """
    from pyspark import SparkContext

    ours = SparkContext._gateway is None  # else someone else has started it, and may need it
    try:
        yield
    except KeyboardInterrupt:
        if ours:
            _end_java()
            SparkContext._gateway = SparkContext._jvm = None  # another start makes its own
        raise


def _end_java() -> None:
    """Ends the JVMs that this process has started. Interrupts wait until it is done."""
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_main else None
    try:
        deadline = time.monotonic() + _JAVA_END_WAIT_S
        children = _java_children()
        for pid in children:
            _send(pid, signal.SIGTERM)  # its exit handlers remove its folders
        while (children := _java_children()) and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in children:
            _send(pid, signal.SIGKILL)
    finally:
        if in_main:
            signal.signal(signal.SIGINT, before or signal.default_int_handler)


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _java_children() -> list[int]:
    """Ids of the processes of spark-submit below this one that run; Linux tells of them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (entry / "cmdline").read_bytes().lower().replace(b"-", b"")
        except OSError:
            continue
        if int(parent) == os.getpid() and state != "Z" and b"sparksubmit" in command:
            found.append(int(entry.name))
    return found
