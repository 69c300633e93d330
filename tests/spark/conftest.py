"""A two-executor Spark session for all tests, the digits as Parquet, and short solvers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "python" / "hearth" / "demo"
sys.path.insert(0, str(DIGITS))
# Every process of the session inherits this variable, including a test's programs, so that
# leftovers can be found.
MARK = f"HEARTH_TEST_MARK={os.environ.get('HEARTH_TEST_MARK') or uuid.uuid4()}"


@pytest.fixture(scope="session")
def spark():
    from hearth.spark import session as spark_session

    os.environ.update([MARK.split("=")])
    session = spark_session.start("hearth-tests", executors=2)
    yield session
    session.stop()


class Digits:
    """The example's files, copied to a separate folder, with shortened solvers."""

    def __init__(self, folder: Path):
        import prepare

        self.folder = folder
        self.held_out = prepare.write_tables(folder / "work")
        for file in DIGITS.glob("*.prototxt"):
            shutil.copy(file, folder)

    def table(self, kind: str, split: str) -> str:
        return str(self.folder / "work" / kind / f"{split}.parquet")

    def solver(self, layer: str = "memory", batch: int | None = None, **settings: object) -> str:
        """Writes a solver (and net) with changed settings; None removes a setting."""
        name = uuid.uuid4().hex[:8]
        net = (self.folder / f"lenet_{layer}_train_test.prototxt").read_text()
        if batch is not None:
            net = re.sub(r"batch_size: \d+", f"batch_size: {batch}", net)
        (self.folder / f"{name}_net.prototxt").write_text(net)
        text = (self.folder / f"lenet_{layer}_solver.prototxt").read_text()
        for key, value in {"net": f'"{name}_net.prototxt"', **settings}.items():
            text = re.sub(rf"(?m)^{key}: .*\n", "", text)
            text += "" if value is None else f"{key}: {value}\n"
        path = self.folder / f"{name}_solver.prototxt"
        path.write_text(text)
        return str(path)

    def config(self, spark, solver: str, **flags: object):
        from hearth.caffeonspark import Config

        model = f"file:{solver.replace('.prototxt', '.caffemodel')}"
        return Config(spark, {"conf": solver, "model": model, **flags})


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    return Digits(tmp_path_factory.mktemp("digits"))


@pytest.fixture(scope="session")
def trained(spark, digits):
    """A Config whose model has been trained on the digits for a while."""
    from hearth.caffeonspark import CaffeOnSpark, DataSource

    solver = digits.solver("memory", max_iter=200)
    conf = digits.config(spark, solver, clusterSize="2", features="accuracy,ip1,ip2", label="label")
    CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
    return conf


def marked_processes(word: str) -> list[int]:
    """Ids of the session's processes, under any parent, with `word` in their command."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().decode(errors="replace")
            environment = (entry / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if word in command and MARK in environment:
            found.append(int(entry.name))
    return found


@pytest.fixture
def remote():
    from hosts import RemoteHost

    try:
        host = RemoteHost().__enter__()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"cannot create a network namespace with a link: {error}")
    yield host
    host.__exit__(None, None, None)
