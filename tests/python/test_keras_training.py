"""The epochs of KerasEstimator, in a process of its own: TensorFlow and a later import of PyTorch's
compiler end a process that has both."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("keras_training_cases.py")


@pytest.mark.tensorflow
@pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed")
def test_the_epochs_of_keras_trainings():
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(CASES)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
