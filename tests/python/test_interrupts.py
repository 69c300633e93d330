"""Ctrl-C at CaffeOnSpark's command line while stopping takes time."""

import os
import signal
import subprocess
import sys
import time

import pytest

# Fakes a job in Spark whose cancellation takes time.
PROGRAM = """
import sys, threading
from hearth.caffeonspark import __main__ as front
from hearth.caffeonspark import command_line

cancelled = threading.Event()

class Spark:
    @property
    def sparkContext(self):
        return self

    def setLogLevel(self, level):
        pass

    def cancelAllJobs(self):
        if not cancelled.is_set():  # it is called until the work has ended
            print("stopping", flush=True)
            sys.stdin.readline()
            cancelled.set()

    def stop(self):
        print("stopped", flush=True)

def run(arguments, started):
    started(Spark())
    print("working", flush=True)
    cancelled.wait(30)
    raise RuntimeError("cancelled")

command_line.run = run
sys.exit(front.main(["-train", "-conf", "solver"]))
"""

# The interrupt arrives while the program imports its modules.
LOADING = """
import sys
from hearth.caffeonspark import __main__ as front

class Slow:
    def find_spec(self, name, *_):
        if name == "hearth.caffeonspark.command_line":
            print("loading", flush=True)
            sys.stdin.readline()  # after the interrupt

sys.meta_path.insert(0, Slow())
sys.exit(front.main(["-train", "-conf", "solver"]))
"""


@pytest.mark.parametrize("times", [1, 3])
def test_an_interrupted_program_cleans_up_and_prints_one_line(times):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], text=True, **pipes)
    assert process.stdout.readline() == "working\n"
    os.kill(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "stopping\n"
    for _ in range(times - 1):
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.1)
    said, complained = process.communicate("go on\n", timeout=60)
    assert (process.returncode, said) == (130, "stopped\n")
    assert complained == "caffeonspark: interrupted\n"


def test_a_program_interrupted_while_it_loads_prints_one_line():
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen([sys.executable, "-c", LOADING], text=True, **pipes)
    assert process.stdout.readline() == "loading\n"
    os.kill(process.pid, signal.SIGINT)
    _, complained = process.communicate("go on\n", timeout=60)
    assert (process.returncode, complained) == (130, "caffeonspark: interrupted\n")


STUCK = """
import atexit, time
from hearth.caffeonspark import interrupts

atexit.register(lambda: print("last", flush=True))
atexit.register(time.sleep, {seconds})
interrupts.exit_with({status})
"""


@pytest.mark.parametrize(
    ("seconds", "status", "said"), [(0, 130, "last\n"), (600, 130, ""), (0, 1, "last\n")]
)
def test_a_program_ends_though_an_exit_handler_does_not(seconds, status, said):
    program = STUCK.format(seconds=seconds, status=status)
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stdout.decode()) == (status, said)
