"""Invalid rows from a Spark task: the rank reports the reason in one line."""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hearth import caffe
from hearth.caffe_jobs.trainer_process import RankError, TrainerProcess, stream_of
from hearth.native import _core as core
from hearth.native.failure import Failure

MOST_SECONDS = 10
WEIGHTS = Path(__file__).resolve().parents[1] / "data" / "golden" / "files" / "net.caffemodel"

ROW_NET = """
layer { name: "data" type: "CoSData" top: "x" top: "label"
  source_class: "com.yahoo.ml.caffe.DataFrameSource"
  cos_data_param { batch_size: 4 source: "unused"
    top { name: "x" type: FLOAT_ARRAY channels: 2 sample_num_axes: 1 }
    top { name: "label" type: INT channels: 1 sample_num_axes: 0 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
SOLVER = 'base_lr: 0.1 lr_policy: "fixed" max_iter: 5 snapshot_after_train: false'
X = pa.array([[1.0, 2.0]] * 8, pa.list_(pa.float32()))
LABEL = pa.array([0, 1, 2, 0, 1, 2, 0, 1], pa.int32())

# {case: (rows of a Spark task, additional fields of the job, expected message)}
ROWS = {
    "no rows": (None, {}, r"no rows to train on: a whole epoch had no rows; check the data source"),
    "missing column": ({"x": X}, {}, r"layer 'data'.*no column 'label'; their columns are: x"),
    "label too large": (
        {"x": X, "label": pa.array([0, 1, 2, 7] * 2, pa.int32())},
        {},
        r"iteration 0: layer 'loss'.*label 7 at position 3 is not one of the classes 0 to 2",
    ),
    "negative label": (
        {"x": X, "label": pa.array([0, 1, -1, 2] * 2, pa.int32())},
        {},
        r"layer 'loss'.*label -1 at position 2 is not one of the classes 0 to 2",
    ),
    "label of another type": (
        {"x": X, "label": pa.array([[1]] * 8, pa.list_(pa.int32()))},
        {},
        r"layer 'data'.*column 'label' has type list, but a number is needed",
    ),
    "text for numbers": (
        {"x": pa.array(["a"] * 8), "label": LABEL},
        {},
        r"layer 'data'.*column 'x' has type string, but a list of numbers is needed",
    ),
    "nulls only": (
        {"x": X, "label": pa.nulls(8, pa.int32())},
        {},
        r"no rows to train on: none of 8 can be used: .*column 'label' is null",
    ),
    "more nulls than allowed": (
        {"x": X, "label": pa.array([0, None, 2, 0, None, 2, 0, 1], pa.int32())},
        {"max_bad_records": "1"},
        r"2 of \d rows cannot be used, but -maxBadRecords allows 1; .*: 00000001, 00000004 "
        r"\(00000001: column 'label' is null\)",
    ),
    "lists of another length": (
        {"x": pa.array([[1.0, 2.0], [1.0] * 3] * 4, pa.list_(pa.float32())), "label": LABEL},
        {"max_bad_records": "0.1"},
        r"4 of 8 rows cannot be used, but -maxBadRecords allows a fraction of 0\.1; .*"
        r"column 'x' has 3 values, more than the 2",
    ),
    "weights of another net": (
        {"x": X, "label": LABEL},
        {"weights": [str(WEIGHTS)]},
        r"weights .*net\.caffemodel: .*parameter 0 has shape 3 2 \(6\), but the trained one has|"
        r"weights .*net\.caffemodel: the weights are of another net",
    ),
}


def failure_with(columns: Any, fields: dict[str, Any], folder: Path) -> Failure:
    """The error of a rank that trains on these columns, with `fields` added to its job."""
    model = folder / "model.caffemodel"
    writer = core.RingWriter()
    job = {
        "mode": "train",
        "rank": 0,
        "world": 1,
        "host": "h",
        "solver": {"path": "s.prototxt", "text": SOLVER},
        "net": {"path": "n.prototxt", "text": ROW_NET},
        "model": str(model),
        "streams": {"train": stream_of(writer)},
        **fields,
    }
    start = time.monotonic()
    with closing(TrainerProcess(job, writer.fds())) as trainer:
        writer.close_child_fds()
        if columns is not None:
            writer.write(pa.record_batch(columns), 10)
        writer.end()
        with pytest.raises(RankError) as caught:
            trainer.wait()
    writer.close()
    assert time.monotonic() - start < MOST_SECONDS
    return caught.value.failure


@pytest.mark.parametrize("case", ROWS)
def test_a_rank_reports_invalid_rows(case: str, tmp_path: Path) -> None:
    columns, fields, said = ROWS[case]
    failure = failure_with(columns, fields, tmp_path)
    assert "\n" not in failure.text
    assert re.search(f"rank 0 on host h failed: .*({said})", failure.text), failure
    assert list(tmp_path.iterdir()) == []


def test_weights_that_do_not_fit_a_layer_name_it(tmp_path: Path) -> None:
    net = tmp_path / "other.prototxt"
    net.write_text(
        'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 5 } } }\n'
        'layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"\n'
        "  inner_product_param { num_output: 3 } }"
    )
    weights = str(tmp_path / "other.caffemodel")
    caffe.Net(str(net), caffe.TEST).save(weights)
    rows = {"x": X, "label": LABEL}
    failure = failure_with(rows, {"weights": [weights]}, tmp_path)
    assert failure.layer == "ip"
    said = "layer 'ip': parameter 0 has shape 3 2 (6), but the trained one has 3 5 (15)"
    assert f"weights {weights}: {said}" in failure.text
