"""A daemon that has imported common modules forks the Python workers of a local cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hearth.spark import session as spark_session


def test_a_worker_has_pandas_imported_and_pyspark_compiled(spark):
    def worker(batches):
        import pyarrow as pa
        import pyspark

        list(batches)
        with open(f"/proc/{os.getppid()}/cmdline", encoding="utf-8") as file:
            daemon = file.read().split("\0")
        with open(f"/proc/{os.getppid()}/maps", encoding="utf-8") as file:
            has_pandas = "/pandas/" in file.read()
        found = {"module": [daemon[2]], "has_pandas": [has_pandas], "pyspark": [pyspark.__file__]}
        yield pa.RecordBatch.from_pydict(found)

    (row,) = (
        spark.range(0, 1, 1, 1)
        .mapInArrow(worker, "module string, has_pandas boolean, pyspark string")
        .collect()
    )
    assert row.module == "hearth.spark.worker_daemon"
    assert row.has_pandas
    assert Path(row.pyspark).is_file()  # a plain file, not in an archive


_DRAWS = """
import os, runpy
from hearth.spark import worker_daemon
runpy.run_module = lambda *name, **how: None
worker_daemon.main()
import numpy
for _ in range(2):
    if os.fork() == 0:
        print(numpy.random.rand(), flush=True)
        os._exit(0)
    os.wait()
"""


def test_workers_draw_other_random_numbers():
    command = [sys.executable, "-c", _DRAWS]
    first, second = subprocess.run(command, capture_output=True, check=True).stdout.split()
    assert first != second


def test_other_pythons_have_sparks_archive(monkeypatch, tmp_path):
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/another-python")
    home = spark_session.writable_home()
    assert list((home / "python" / "lib").glob("pyspark*.zip"))
