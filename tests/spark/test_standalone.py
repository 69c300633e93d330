"""Recovery on a Master with Workers; in a process of its own, as a session is one per process."""

import subprocess
import sys
from pathlib import Path

SOAK = Path(__file__).resolve().parents[1] / "soak" / "soak.py"


def test_a_training_survives_kills_on_a_standalone_cluster():
    command = [sys.executable, str(SOAK), "--standalone", "--kills", "3", "--iterations", "400"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "model right: True" in done.stdout
