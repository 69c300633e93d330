"""predict() in executors' tasks and on nodes with a device: row order, retries and failures."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from pyspark import cloudpickle

from hearth.ml import predict, release_devices

ROWS = 1000
NAMES = ["id", "a.b", "same", "same", "image"]


@pytest.fixture(scope="module", autouse=True)
def by_value():
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    release_devices()


@pytest.fixture(scope="module")
def frame(spark):
    columns = ("id", "array(float(id), float(id))", "id", "string(id)", "binary(string(id))")
    return spark.range(0, ROWS, 1, 4).selectExpr(*columns).toDF(*NAMES)


class Model:
    """Records each load in `folder`; fails for a batch that contains the value `bad`."""

    def __init__(self, folder: Path, bad: float = -1.0):
        self.folder, self.bad = str(folder), bad

    def __call__(self):
        with open(f"{self.folder}/{time.time_ns()}-{os.getpid()}", "w") as file:
            file.write(str(os.getpid()))
        return self.apply

    def apply(self, pair):
        if (pair[:, 0] == self.bad).any():
            raise ValueError(f"the model takes no {self.bad:g}")
        return pair.sum(axis=1), pair * 2

    def pids(self) -> list[int]:
        return [int(file.read_text()) for file in Path(self.folder).iterdir()]


def checked(found) -> None:
    assert found.columns == [*NAMES, "y", "twice"]
    rows = found.collect()
    assert [row[0] for row in rows] == list(range(ROWS))
    for row in rows:
        n = row[0]
        assert row[1:] == ([n, n], n, str(n), str(n).encode(), 2 * n, [2 * n, 2 * n])


def fail_once(folder: Path, frame):
    """The frame's rows; the first attempt at partition 1 fails before a batch's last row."""
    marker = f"{folder}/failed"

    def rows(batches):
        from pyspark import TaskContext

        for batch in batches:
            yield batch.slice(0, batch.num_rows - 1)
            if TaskContext.get().partitionId() == 1 and not os.path.exists(marker):
                Path(marker).touch()
                raise OSError("a disk went away")
            yield batch.slice(batch.num_rows - 1)

    numbered = frame.toDF(*(f"{i}" for i in range(len(NAMES))))
    return numbered.mapInArrow(rows, numbered.schema).toDF(*NAMES)


@pytest.mark.parametrize("devices", [0, 1])
def test_rows_keep_order_and_columns_and_arrive_once_despite_retries(frame, tmp_path, devices):
    notes = tmp_path / "notes"
    notes.mkdir()
    model = Model(notes)
    outputs = "y float, twice array<double>"
    rows = fail_once(tmp_path, frame)
    checked(predict(rows, model, "a.b", outputs, batch_size=70, devices=devices))
    assert (tmp_path / "failed").exists()
    loaded = model.pids()
    checked(predict(frame, model, "a.b", outputs, batch_size=70, devices=devices))
    if devices:
        assert len(model.pids()) == 1
    else:  # a worker loads the model once, for all tasks and for both jobs
        assert len(set(model.pids())) == len(model.pids())
        assert set(loaded) <= set(model.pids())


def test_values_refused_by_a_model_fail_the_job_not_the_node(frame, tmp_path):
    model = Model(tmp_path, bad=600.0)

    def found(rows):
        outputs = "y float, twice array<double>"
        return predict(rows, model, "a.b", outputs, batch_size=50, devices=1).collect()

    words = r"the model takes no 600; in rows 100 to 149 of partition 2"
    with pytest.raises(Exception, match=words):
        found(frame)
    assert len(found(frame.where("id < 500"))) == 500
    assert len(model.pids()) == 1


def test_prepare_runs_on_the_executors_and_the_model_on_the_devices(frame):
    where = os.getpid()

    def decode(image):
        assert os.getpid() != where
        numbers = np.array([int(each) for each in image], "i8")
        pixels = np.repeat(numbers, 12).reshape(-1, 2, 2, 3)
        return {"pixels": pixels, "pid": np.full(len(image), os.getpid())}

    def make():
        def model(pixels, pid):
            assert pixels.shape[1:] == (2, 2, 3)
            return {"y": pixels.sum(axis=(1, 2, 3)), "apart": pid != os.getpid()}

        return model

    found = predict(
        frame, make, ["image"], "y bigint, apart boolean", 64, devices=1, prepare=decode
    )
    rows = found.select("y", "apart").collect()
    assert [row.y for row in rows] == [12 * n for n in range(ROWS)]
    assert all(row.apart for row in rows)


def test_a_killed_node_ends_the_job_and_the_next_call_starts_another(frame, tmp_path):
    model = Model(tmp_path)
    outputs = "y float, twice array<double>"
    checked(predict(frame, model, "a.b", outputs, devices=1))
    (node,) = model.pids()

    def kill(batches):
        for batch in batches:
            yield batch
            with suppress(ProcessLookupError):
                os.kill(node, signal.SIGKILL)

    rows = frame.toDF(*(f"{i}" for i in range(len(NAMES))))
    rows = rows.mapInArrow(kill, rows.schema).toDF(*NAMES)
    with pytest.raises(Exception, match=r"worker:0 on host \S+ failed: its process was killed by"):
        predict(rows, model, "a.b", outputs, devices=1).collect()
    checked(predict(frame, model, "a.b", outputs, devices=1))
    assert len(model.pids()) == 2


def test_errors_are_raised_before_a_job(frame):
    def call(inputs="a.b", outputs="y float", **options):
        return predict(frame, lambda: len, inputs, outputs, **options)

    with pytest.raises(ValueError, match=r"reads the column .x., but the DataFrame has id, a\.b"):
        call("x")
    with pytest.raises(ValueError, match="adds a column 'ID', which the DataFrame has already"):
        call(outputs="ID float")
    with pytest.raises(ValueError, match="batch_size is 0: it must be at least 1"):
        call(batch_size=0)
    with pytest.raises(ValueError, match="precision is 'fp8'"):
        call(precision="fp8")
    with pytest.raises(ValueError, match="reads no column"):
        call([])
    with pytest.raises(ValueError, match=r"name columns and types \(\"scores array<float>\"\)"):
        call(outputs="float")
