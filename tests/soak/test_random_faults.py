"""Ten randomized fault tests: each row once per epoch, despite failing tasks and processes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

# The fastest cases that cover both feeds and all kinds of faults.
SEEDS = (6, 10, 16, 22, 24, 40, 43, 45, 46, 48)
KILLS = {"", "trainer", "worker", "executor", "feed worker"}
CASE = re.compile(
    r"^Case\(seed=(\d+), feed='(\w+)'.* kill='([\w ]*)'.* fails_once=(\w+), is_slow_once=(\w+)\)"
    r".* (\d+) further attempts, exact$",
    re.MULTILINE,
)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_each_row_is_trained_on_once_per_epoch_despite_failures():
    program = Path(__file__).with_name("random_faults.py")
    command = [sys.executable, program, "--seeds", *map(str, SEEDS)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4000:]
    cases = CASE.findall(ran.stdout)
    assert tuple(int(seed) for seed, *_ in cases) == SEEDS, ran.stdout
    assert {kill for _, _, kill, *_ in cases} == KILLS
    assert sum(feed == "tensorflow" for _, feed, *_ in cases) == 5
    # Cases with only slow tasks: their additional attempts are Spark's speculation.
    speculated = [
        int(attempts)
        for _, feed, kill, fails, is_slow, attempts in cases
        if (feed, kill, fails, is_slow) == ("tensorflow", "", "False", "True")
    ]
    assert any(speculated), f"Spark has not speculated: {speculated}"
