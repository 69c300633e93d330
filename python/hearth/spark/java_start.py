"""The JVM behind a Spark session that this process starts.

It and its descendants are one session of processes (setsid), so that they can be found and ended at
any moment of their start, when neither the JVM nor py4j listens yet.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hearth.spark.java_stderr import filtered_stderr

_LOOK_S = 0.02
# Killed processes are gone at once, but for those that wait for a disk.
_KILL_WAIT_S = 8.0


_killing = threading.Event()


def is_running() -> bool:
    """Whether this process has a JVM, of launch() or of someone else."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def launch(conf: Mapping[str, str], folders: Sequence[Path] = ()) -> None:
    """Starts the JVM with Spark's settings, unless this process has one. Any thread may call it.

    `folders`: for its temporary files and those of the executors that it starts.

    Raises:
        PySparkRuntimeError: it ended at once.
        KeyboardInterrupt: kill() is under way.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if is_running():
        return
    if _killing.is_set():
        raise KeyboardInterrupt
    settings = SparkConf().setAll(list(conf.items()))
    if folders:
        key = "spark.driver.extraJavaOptions"
        settings.set(key, f'{conf.get(key, "")} "-Djava.io.tmpdir={folders[0]}"')
    local_dirs = _environment("SPARK_LOCAL_DIRS", ",".join(map(str, folders)))
    with local_dirs, filtered_stderr() as stderr:
        gateway = launch_gateway(settings, {"start_new_session": True, "stderr": stderr})
    SparkContext._ensure_initialized(gateway=gateway, conf=settings)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Sets a variable for the processes that are started meanwhile; "" leaves it as it is."""
    before = os.environ.get(name)
    if value:
        os.environ[name] = value
    try:
        yield
    finally:
        if value and before is None:
            del os.environ[name]
        elif before is not None:
            os.environ[name] = before


def kill(ended: Callable[[], bool] = lambda: True) -> None:
    """Kills what launch() has begun or is about to begin, until `ended` and nothing is left.

    Nothing is asked to end: a JVM in its first moments does not hear it, and a later one would
    complain of what it was doing. So its folders are left to whoever has made them.
    """
    _killing.set()
    sessions: set[int] = set()  # of processes; their leaders may go first
    deadline = time.monotonic() + _KILL_WAIT_S
    while time.monotonic() < deadline:
        left = _processes_of_spark_submit(sessions)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not left and ended():
            break
        time.sleep(_LOOK_S)
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    if context is not None:  # another start makes its own
        if context._active_spark_context is not None:
            context._active_spark_context._jsc = None  # by which sessions know that it has ended
        context._gateway = context._jvm = context._active_spark_context = None
    _killing.clear()


@contextmanager
def undone_by_interrupts() -> Iterator[None]:
    """Kills the JVM that a start has begun in the main thread, where Ctrl-C interrupts it."""
    ours = not is_running()  # else someone else has started it, and may need it
    try:
        yield
    except KeyboardInterrupt:
        if ours:
            with _deaf_to_interrupts():
                kill()
        raise


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.default_int_handler)


def _processes_of_spark_submit(sessions: set[int]) -> list[int]:
    """Ids of the processes of `sessions` that run; adds those that launch() began. Linux tells."""
    running = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            pid = int(entry.name)
            # A process's words are its own to give: while it cannot run, to read them may take
            # long, so only those are asked that may be ours.
            ours = int(parent) == os.getpid() and int(session) == pid and pid not in sessions
            command = (entry / "cmdline").read_bytes() if ours and state not in "ZX" else b""
        except OSError:
            continue
        if state not in "ZX":
            running[pid] = int(session)
            if b"sparksubmit" in command.lower().replace(b"-", b""):
                sessions.add(pid)
    return [pid for pid, session in running.items() if session in sessions]
