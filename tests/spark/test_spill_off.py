"""Streamed rows, which each epoch reads again: their cost, and unsupported sources."""

import contextlib
import os
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from faults import trainers
from pyspark import cloudpickle

from hearth.caffe_jobs import launch
from hearth.caffeonspark import CaffeOnSpark, Config, DataSource, FlagError
from hearth.caffeonspark.flag_files import FlagFiles
from hearth.caffeonspark.jobs import train_job
from hearth.sources.rank_rows import RankRows
from hearth.sources.source import Piece, Split

FLOATS, BATCH, ITERATIONS = 10_000, 256, 120
NET = f"""name: "wide"
layer {{ name: "data" type: "CoSData" top: "x" top: "label" include {{ phase: TRAIN }}
  source_class: "com.yahoo.ml.caffe.DataFrameSource"
  cos_data_param {{ batch_size: {BATCH} source: "file:nowhere"
    top {{ name: "x" type: FLOAT_ARRAY channels: {FLOATS} sample_num_axes: 1 }}
    top {{ name: "label" type: INT channels: 1 sample_num_axes: 0 }} }} }}
layer {{ name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param {{ num_output: 2 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }}
"""


class TwoTerabytes:
    """A source of 50,000 splits of 1,024 rows of 40 KB, which are generated while they are read."""

    remote = False

    def pin(self, spark=None):
        return self

    def identity(self):
        return "two terabytes"

    def splits(self):
        pieces = (Piece(0, number, 1024) for number in range(50_000))
        return [Split(i, 40 << 20, 1024, pieces=(piece,)) for i, piece in enumerate(pieces)]

    def read(self, split, count=None):
        (piece,) = split.pieces
        values = np.random.default_rng(piece.key).random(BATCH * FLOATS, np.float32)
        ends = pa.array(np.arange(0, len(values) + 1, FLOATS, dtype=np.int32))
        labels = pa.array(np.arange(BATCH) % 2, pa.int32())
        for _ in range(4):
            x = pa.ListArray.from_arrays(ends, pa.array(values))
            yield pa.record_batch({"x": x, "label": labels})


def own_bytes(pid):
    """Bytes of a process's anonymous memory; 0 if it has ended, as it may before its last event
    arrives.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    return int(found[1]) << 10 if found else 0


def unnamed_files(pid, models):
    """Sizes of the process's open files that have been unlinked, as a spool is.

    Excluded are rings (memory files), the standard streams (pytest captures them in unlinked
    files), and models in the folder `models`, which get a name once they are complete.
    """
    found = {}
    for entry in Path(f"/proc/{pid}/fd").glob("*"):
        if int(entry.name) <= 2:
            continue
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            target = os.readlink(entry)
            if target.endswith("(deleted)") and not target.startswith(("/memfd:", f"{models}/#")):
                found[entry.name, target] = os.stat(entry).st_size
    return found


def test_a_source_of_two_terabytes_takes_the_memory_of_two_windows_and_no_disk(spark, tmp_path):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # not importable on executors
    (tmp_path / "net.prototxt").write_text(NET)
    solver = tmp_path / "solver.prototxt"
    solver.write_text(
        f'net: "{tmp_path}/net.prototxt" max_iter: {ITERATIONS} base_lr: 0.01 lr_policy: "fixed" '
        "display: 20 snapshot: 0 snapshot_after_train: false solver_mode: CPU"
    )
    conf = Config(spark, {"conf": str(solver), "model": f"file:{tmp_path}/m", "clusterSize": "2"})
    job = train_job(conf, False, FlagFiles.of(spark))
    seen = []
    others = trainers()  # trainers of earlier tests' predictions

    def watch(event):
        if event.get("event") == "progress":
            pids = [pid for pid in trainers() if pid not in others]
            seen.append([(own_bytes(pid), unnamed_files(pid, tmp_path)) for pid in pids])

    rows = RankRows(TwoTerabytes(), job["seed"])
    done = launch.run(spark, launch.Plan(2, job, {"train": rows}), watch)
    assert done["iteration"] == ITERATIONS  # having read 2.4 GB of rows
    # The last events may arrive after a trainer has ended.
    memories = [[memory for memory, _ in processes] for processes in seen]
    most = [max(each) for each in memories if len(each) == 2 and min(each) > 0]
    assert len(most) > 2, memories
    # Some 175 MB without rows, plus two windows of 64 MB and a batch.
    half = len(most) // 2
    assert max(most) < 500 << 20, most
    assert max(most[half:]) < max(most[:half]) + (64 << 20), most
    unnamed = [files for processes in seen for _, files in processes]
    assert not any(any(files.values()) for files in unnamed), unnamed


@pytest.mark.parametrize("kind", ["frame", "expression"])
def test_rows_that_cannot_be_reread_are_refused_before_the_start(spark, digits, kind):
    conf = digits.config(spark, digits.solver("cos", max_iter=5), clusterSize="2", spill="off")
    source = DataSource(spark).getSource(conf, True)
    if kind == "frame":
        rows = spark.read.parquet(digits.table("raw", "train"))
        source = DataSource(spark).fromDataFrame(conf, rows, True)
    else:
        source.parameter["dataframe_column_select"] = ["label + 0 as label", "image"]
    with pytest.raises(FlagError, match=r"^-spill off: .* cannot be read again in each epoch: the"):
        CaffeOnSpark(spark).train(source)


def test_other_values_than_on_and_off_are_refused(spark, digits):
    with pytest.raises(FlagError, match=r"-spill is 'never'; it must be on or off"):
        digits.config(spark, digits.solver("cos"), spill="never")
