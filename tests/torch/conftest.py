"""A two-executor Spark session for the PyTorch tests; a folder where nodes tell what they saw."""

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path

import pytest
from pyspark import cloudpickle


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.torch)
            # The executors cannot import test modules: their functions travel by value.
            cloudpickle.register_pickle_by_value(sys.modules[item.module.__name__])


@pytest.fixture(scope="session")
def spark():
    from hearth.spark import session as spark_session

    os.environ.setdefault("HEARTH_TEST_MARK", str(uuid.uuid4()))
    session = spark_session.start("hearth-tests", executors=2)
    yield session
    session.stop()


class Told:
    """A folder where each node leaves one JSON file; goes to the nodes as an argument."""

    def __init__(self, folder: Path):
        self.folder = str(folder)

    def write(self, ctx, value) -> None:
        hidden = os.path.join(self.folder, f".{ctx.role}{ctx.index}")
        with open(hidden, "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.rename(hidden, os.path.join(self.folder, f"{ctx.role}{ctx.index}"))

    def read(self) -> dict:
        files = [file for file in Path(self.folder).iterdir() if not file.name.startswith(".")]
        return {file.name: json.loads(file.read_text()) for file in sorted(files)}


cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def told(tmp_path):
    folder = tmp_path / "told"
    folder.mkdir()
    return Told(folder)
