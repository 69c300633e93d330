"""The Python workers of an own cluster come from a daemon that has imported what they need."""

from __future__ import annotations

import os
from pathlib import Path

from hearth.spark import session as spark_session


def test_a_worker_finds_pandas_imported_and_pyspark_compiled(spark):
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
    assert Path(row.pyspark).is_file()  # not within an archive


def test_other_pythons_have_sparks_archive(monkeypatch, tmp_path):
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/another-python")
    home = spark_session.writable_home()
    assert list((home / "python" / "lib").glob("pyspark*.zip"))
