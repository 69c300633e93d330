"""Ctrl-C at the command line of CaffeOnSpark, where stopping takes its time."""

import os
import signal
import subprocess
import sys
import time

import pytest

# Work, then a cleaning up that a second interrupt must not break off; `spark` sets a handler.
PROGRAM = """
import signal, sys, time
from hearth.caffeonspark import __main__ as front

def run(master, arguments, interrupts):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts.take_over()
    try:
        print("working", flush=True)
        time.sleep(30)
    finally:
        print("stopping", flush=True)
        time.sleep(0.7)
        print("stopped", flush=True)

front._run = run
sys.exit(front.main(["-train", "-conf", "solver"]))
"""


@pytest.mark.parametrize("times", [1, 3])
def test_it_ends_in_one_line_after_cleaning_up(times):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "working\n"
    os.kill(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "stopping\n"
    for _ in range(times - 1):
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.1)
    said, complained = process.communicate(timeout=20)
    assert (process.returncode, said) == (130, "stopped\n")
    assert complained == "caffeonspark: interrupted\n"
