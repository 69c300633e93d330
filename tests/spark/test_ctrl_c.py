"""Ctrl-C in `python -m hearth.caffeonspark`: the real program, with a separate Spark cluster."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faults import check_nothing_left, processes_with
from waiting import wait_until

SLEEPS = """
import time
import caffe

class Sleeps(caffe.Layer):
    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        open(self.param_str, "w").close()
        time.sleep(600)
"""

# Matches the trainers' log lines.
_LOG_LINE = re.compile(r"[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ ")


class Terminal:
    """The program in a separate process group, as a terminal would start it."""

    def __init__(self, folder: Path, solver: str, *flags: str, java: Path | None = None):
        """`java`: the JAVA_HOME to use instead of this process's."""
        self.mark = f"CTRL_C={uuid.uuid4()}"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._stderr = folder / "stderr"
        name, value = self.mark.split("=")
        environment = {k: v for k, v in os.environ.items() if k != "SPARK_HOME"}
        path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
        temporary = str(self.temporary)
        environment |= {name: value, "TMPDIR": temporary, "SPARK_LOCAL_DIRS": temporary}
        environment |= {"PYTHONPATH": path, "PYTHONFAULTHANDLER": "1"}
        environment |= {"JAVA_HOME": str(java)} if java else {}
        command = [sys.executable, "-m", "hearth.caffeonspark", "-train", "-conf", solver]
        command += ["-model", f"file:{folder}/m.caffemodel", "-clusterSize", "2", *flags]
        with open(self._stderr, "wb") as file:
            self.process = subprocess.Popen(
                command, env=environment, stdout=file, stderr=file, start_new_session=True
            )

    def said(self) -> str:
        return self._stderr.read_text(encoding="utf-8", errors="replace")

    def await_(self, what: Callable[[], object]) -> None:
        found = wait_until(lambda: what() or self.process.poll() is not None, 120)
        assert found and self.process.poll() is None, self.said()

    def handles_signals(self) -> bool:
        """Whether Hearth's signal handler is installed: the program then has a second thread."""
        return len(os.listdir(f"/proc/{self.process.pid}/task")) > 1

    def interrupt(self, whole_group: bool = True) -> None:
        """Sends SIGINT to the process group like a terminal, or to the process like `kill -INT`."""
        (os.killpg if whole_group else os.kill)(self.process.pid, signal.SIGINT)

    def check_end(self, before: int) -> None:
        """Checks for status 130 and one line after the first `before` characters, besides trainers'
        logs.
        """
        try:
            status = self.process.wait(90)
        except subprocess.TimeoutExpired:
            os.kill(self.process.pid, signal.SIGABRT)  # prints every thread's stack
            self.process.wait(10)
            pytest.fail(f"it did not end within 90 s: {self.said()[before:]}")
        said = [line for line in self.said()[before:].splitlines() if not _LOG_LINE.match(line)]
        assert (status, said) == (130, ["caffeonspark: interrupted"])

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture
def terminal(tmp_path, digits) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path, digits.solver("cos", max_iter=1000000))
    yield terminal
    terminal.close()


@pytest.fixture
def sleeper(tmp_path, digits) -> Iterator[Terminal]:
    """Trains for one iteration; the `-test` after it would take ten minutes per minibatch."""
    solver = digits.solver("cos", max_iter=1, test_interval=None, test_iter=None)
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    python = f'module: "sleeps" layer: "Sleeps" param_str: "{tmp_path}/asleep"'
    with open(solver.replace("_solver", "_net"), "a", encoding="utf-8") as net:
        net.write(
            'layer { name: "sleeps" type: "Python" bottom: "ip2" top: "slept" '
            f"include {{ phase: TEST }} python_param {{ {python} }} }}\n"
        )
    terminal = Terminal(tmp_path, solver, "-test", "-output", f"file:{tmp_path}/out")
    yield terminal
    terminal.close()


def test_an_interrupted_training_prints_one_line_and_leaves_no_process(terminal):
    shared = set(os.listdir("/dev/shm"))
    terminal.await_(lambda: "loss = " in terminal.said())
    assert any("--control-fd" in line for line in processes_with(terminal.mark))
    before = len(terminal.said())
    terminal.interrupt()
    time.sleep(2)
    if terminal.process.poll() is None:
        terminal.interrupt()
    terminal.check_end(before)
    check_nothing_left(terminal.mark, terminal.temporary, shared)


def test_an_interrupted_test_prints_one_line_and_leaves_no_process(sleeper, tmp_path):
    shared = set(os.listdir("/dev/shm"))
    sleeper.await_(lambda: (tmp_path / "asleep").exists())
    before = len(sleeper.said())
    sleeper.interrupt()
    sleeper.check_end(before)
    check_nothing_left(sleeper.mark, sleeper.temporary, shared)


# The times hit different phases: Python imports modules; a shell looks for Java; the JVM runs but
# has not reported its port yet; py4j requests a session; executors start.
@pytest.mark.parametrize(
    ("seconds", "whole_group"), [(0.3, True), (1, False), (2, True), (3, False), (5, True)]
)
def test_an_interrupted_start_of_spark_leaves_no_process(terminal, seconds, whole_group):
    shared = set(os.listdir("/dev/shm"))
    time.sleep(seconds)
    terminal.await_(terminal.handles_signals)
    terminal.interrupt(whole_group)
    terminal.check_end(0)
    check_nothing_left(terminal.mark, terminal.temporary, shared)
    assert list(terminal.temporary.iterdir()) == []  # nor files of Spark


@pytest.mark.parametrize("whole_group", [True, False])
def test_an_interrupt_does_not_wait_for_the_start_of_spark(digits, tmp_path, whole_group):
    """The start never finishes, because a fake `java` only sleeps."""
    shared = set(os.listdir("/dev/shm"))
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f'#!/bin/sh\ntouch "{tmp_path}/started"\nexec sleep 600\n')
    java.chmod(0o755)
    terminal = Terminal(tmp_path, digits.solver("cos", max_iter=1), java=tmp_path)
    try:
        terminal.await_((tmp_path / "started").exists)
        terminal.interrupt(whole_group)
        terminal.check_end(0)
        check_nothing_left(terminal.mark, terminal.temporary, shared)
    finally:
        terminal.close()
