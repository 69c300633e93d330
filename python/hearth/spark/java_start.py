"""Starts and kills the JVM of a Spark session.

The JVM and its descendants form a process session (setsid). So they can be found and killed at any
time during their start, even before the JVM or py4j listens.
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
# Limit of the wait for killed processes. They end immediately, unless they wait for a disk.
_KILL_WAIT_S = 8.0


_killing = threading.Event()


def is_running() -> bool:
    """Whether this process has a JVM, whether or not launch() started it."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def launch(conf: Mapping[str, str], folders: Sequence[Path] = ()) -> None:
    """Starts the JVM with Spark's settings, unless this process has one. Thread-safe.

    `folders`: folders for temporary files of the JVM and of the executors that it starts.

    Raises:
        PySparkRuntimeError: the JVM ended while it started.
        KeyboardInterrupt: kill() is in progress.
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
    """Sets an environment variable for processes started in the block; "" leaves it unchanged."""
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
    """Kills the processes that launch() has started or is about to start, until ended() returns
    true and all of them have exited; at most _KILL_WAIT_S.

    Sends SIGKILL only: a JVM ignores other signals while it starts, and would later log errors
    about its work. Does not remove the folders that were passed to launch().
    """
    _killing.set()
    sessions: set[int] = set()  # ids of process sessions; their leaders may end first
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
    if context is not None:  # so that the next start creates a new context
        if context._active_spark_context is not None:
            context._active_spark_context._jsc = None  # its sessions count as ended
        context._gateway = context._jvm = context._active_spark_context = None
    _killing.clear()


@contextmanager
def killed_on_interrupt() -> Iterator[None]:
    """Kills the JVM that the block started if Ctrl-C interrupts the block."""
    ours = not is_running()  # do not kill another caller's JVM
    try:
        yield
    except KeyboardInterrupt:
        if ours:
            with _ignoring_interrupts():
                kill()
        raise


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.default_int_handler)


def _processes_of_spark_submit(sessions: set[int]) -> list[int]:
    """Adds launch()'s sessions to `sessions`; returns the process ids in all of them. For Linux."""
    running = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            pid = int(entry.name)
            # Only candidates' command lines are read, because reading blocks if the process is
            # blocked.
            ours = int(parent) == os.getpid() and int(session) == pid and pid not in sessions
            command = (entry / "cmdline").read_bytes() if ours and state not in "ZX" else b""
        except OSError:
            continue
        if state not in "ZX":
            running[pid] = int(session)
            if b"sparksubmit" in command.lower().replace(b"-", b""):
                sessions.add(pid)
    return [pid for pid, session in running.items() if session in sessions]
