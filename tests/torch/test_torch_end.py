"""A program that ends without waiting for its cluster warns that it kills the nodes."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import time
from hearth.spark import session as spark_session
from hearth.torch import TorchCluster

def main(args, ctx):
    time.sleep(args)

spark = spark_session.start("ends", master="local[1]")
cluster = TorchCluster.run(spark, main, {sleeps})
{end}
print("end of the program")
"""
WARNING = (
    "the program ends while its cluster runs, and kills the nodes: call result() or shutdown()"
)


@pytest.mark.parametrize(
    ("sleeps", "end"),
    [
        (600, "del cluster"),
        (0, "cluster.shutdown()"),
        (-1, "cluster.running.watch.wait(lambda: False, 300)"),  # fails, because no node is left
    ],
)
def test_only_a_program_that_does_not_wait_is_warned(sleeps, end):
    program = PROGRAM.format(sleeps=sleeps, end=end)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.strip().endswith("end of the program")
    assert done.stderr.count(WARNING) == (sleeps > 0), done.stderr
