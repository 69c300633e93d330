"""Keras and tf.data on loaders, without Spark. In a separate process, because a process cannot
import PyTorch's compiler after TensorFlow.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

CASES = ("keras_training_cases.py", "keras_dataset_cases.py", "tf_dataset_cases.py")


@pytest.mark.tensorflow
@pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed")
@pytest.mark.timeout(600)  # half a minute on an idle machine
def test_keras_trains_on_loaders():
    files = [str(Path(__file__).with_name(name)) for name in CASES]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=550)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
