"""The JVM behind a Spark session, while it starts: nobody else knows of it yet."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

# A JVM that is told to end removes its folders first.
_JAVA_END_WAIT_S = 8.0


@contextmanager
def undone_by_interrupts() -> Iterator[None]:
    """Ends the JVM that a start has begun, where Ctrl-C interrupts it, before anything else.

    Left alone it would go on starting in folders that are being removed, and complain of it.
    """
    from pyspark import SparkContext

    ours = SparkContext._gateway is None  # else someone else has started it, and may need it
    before = signal.getsignal(signal.SIGINT)

    def end_java_first(number: int, frame: FrameType | None) -> None:
        _end_java()
        if not callable(before):
            raise KeyboardInterrupt
        before(number, frame)

    hears = ours and threading.current_thread() is threading.main_thread()
    if hears:
        signal.signal(signal.SIGINT, end_java_first)
    try:
        yield
    except KeyboardInterrupt:
        if ours:
            _end_java()  # Spark has a handler of its own by and by
            SparkContext._gateway = SparkContext._jvm = None  # another start makes its own
        raise
    finally:
        if hears and signal.getsignal(signal.SIGINT) is end_java_first:
            signal.signal(signal.SIGINT, before)


def _end_java() -> None:
    """Ends what spark-submit has started for this process. Interrupts wait until it is done."""
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_main else None
    try:
        deadline = time.monotonic() + _JAVA_END_WAIT_S
        started: set[int] = set()  # children that outlive their parents are nobody's then
        while True:
            new = _of_spark_submit() - started
            started |= new
            for pid in new:
                _send(pid, signal.SIGTERM)  # exit handlers remove folders
            left = {pid for pid in started if _is_running(pid)}
            if not left or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        for pid in left:
            _send(pid, signal.SIGKILL)
    finally:
        if in_main:
            signal.signal(signal.SIGINT, before or signal.default_int_handler)


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _of_spark_submit() -> set[int]:
    """Ids of the processes of spark-submit below this one: scripts, launcher and JVM."""
    parents: dict[int, int] = {}
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            pid, parent = (
                int(entry.name),
                (entry / "stat").read_text().rpartition(")")[2].split()[1],
            )
            command = (entry / "cmdline").read_bytes().lower().replace(b"-", b"")
        except OSError:
            continue
        parents[pid] = parent
        if parent == os.getpid() and b"sparksubmit" in command:
            found.add(pid)
    while below := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= below
    return {pid for pid in found if _is_running(pid)}
