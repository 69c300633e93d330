"""A two-executor Spark session for the PyTorch tests, and files in which nodes leave notes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from node_notes import Notes
from pyspark import cloudpickle


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.torch)
            # Executors cannot import test modules, so their functions are pickled by value.
            cloudpickle.register_pickle_by_value(sys.modules[item.module.__name__])


@pytest.fixture(scope="session")
def spark():
    from hearth.spark import session as spark_session

    session = spark_session.start("hearth-tests", executors=2)
    yield session
    session.stop()


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    return Notes(str(folder))
