"""A two-executor Spark session for the cluster tests, and files in which nodes leave notes."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from node_notes import Notes
from pyspark import cloudpickle

# PyTorch's compiler, which its optimizers import, aborts a process that has loaded TensorFlow.
with suppress(ImportError):
    import torch._dynamo  # noqa: F401

# Every process of the session inherits this variable (tests/conftest.py), so that processes that
# outlive their cluster can be found.
MARK = "HEARTH_TEST_MARK"


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.tensorflow)
            # Executors cannot import test modules, so their functions are pickled by value.
            cloudpickle.register_pickle_by_value(sys.modules[item.module.__name__])


@pytest.fixture(scope="session")
def spark():
    from hearth.spark import session as spark_session

    session = spark_session.start("hearth-tests", executors=2)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def sc(spark):
    return spark.sparkContext


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    return Notes(str(folder))


def node_processes() -> list[int]:
    """Ids of the session's supervisors and nodes, under any parent."""
    found = []
    mark = os.environ[MARK].encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if b"hearth.cluster." in command and mark in environment:
            found.append(int(entry.name))
    return found


def no_node_left(timeout_s: float = 30) -> bool:
    """Whether all node processes end before the deadline, which allows for a busy machine."""
    deadline = time.monotonic() + timeout_s
    while node_processes() and time.monotonic() < deadline:
        time.sleep(0.05)
    return not node_processes()
