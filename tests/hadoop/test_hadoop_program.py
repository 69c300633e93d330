"""The `hearth` program with prototxts, models and snapshots in HDFS."""

from __future__ import annotations

import os
import subprocess

import pytest

from hearth import native
from hearth.native import _core

_NET = """name: "dummy"
layer { name: "x" type: "DummyData" top: "x" top: "t"
  dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 }
    data_filler { type: "constant" value: 1 } data_filler { type: "constant" value: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
"""
_SOLVER = """net: "{net}" base_lr: 0.02 lr_policy: "fixed" max_iter: {iterations} snapshot: 4
solver_mode: CPU random_seed: 7 momentum: 0.9 snapshot_format: {form} {more}
"""


def hearth(*arguments: str, status: int = 0) -> str:
    """The program's output."""
    done = subprocess.run(
        [str(native.program()), *arguments],
        env={**native.environment(), "HEARTH_HDFS": "webhdfs"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def names(folder: str) -> list[str]:
    return [os.path.basename(each.uri) for each in _core.list_folder(folder)]


@pytest.mark.parametrize(("form", "ending"), [("BINARYPROTO", ""), ("HDF5", ".h5")])
def test_a_training_resumes_in_hdfs(hadoop, monkeypatch, form, ending):
    monkeypatch.setenv("HEARTH_HDFS", "webhdfs")
    folder = f"hdfs:///user/{hadoop.user}/train{ending}"
    _core.write_file(f"{folder}/net.prototxt", _NET.encode())

    def solver(name: str, iterations: int, more: str = "") -> str:
        text = _SOLVER.format(
            net=f"{folder}/net.prototxt", iterations=iterations, form=form, more=more
        )
        _core.write_file(f"{folder}/{name}.prototxt", text.encode())
        return f"{folder}/{name}.prototxt"

    # Without a prefix, the snapshots are next to the solver.
    hearth("train", "-solver", solver("whole", 8))
    hearth("train", "-solver", solver("part", 4, f'snapshot_prefix: "{folder}/part"'))
    state = f"{folder}/part_iter_4.solverstate{ending}"
    rest = solver("rest", 8, f'snapshot_prefix: "{folder}/part"')
    hearth("train", "-solver", rest, "-snapshot", state)
    models = [
        _core.read_file(f"{folder}/{at}_iter_8.caffemodel{ending}") for at in ("whole", "part")
    ]
    if not ending:  # HDF5 files contain times
        assert models[0] == models[1]
    assert not [name for name in names(folder) if "tmp" in name or "probe" in name]
    weights = f"{folder}/part_iter_8.caffemodel{ending}"
    said = hearth("test", "-model", f"{folder}/net.prototxt", "-weights", weights, "-iterations=1")
    assert "Loss:" in said


def test_a_database_in_hdfs_is_refused_in_a_line(hadoop):
    net = f"hdfs:///user/{hadoop.user}/lmdb.prototxt"
    text = f"""layer {{ name: "d" type: "Data" top: "d" top: "l"
      data_param {{ source: "hdfs:///user/{hadoop.user}/lmdb" batch_size: 1 backend: LMDB }} }}"""
    _core.write_file(net, text.encode())
    said = hearth("test", "-model", net, "-weights", net, "-iterations=1", status=1)
    assert "this needs a local file" in said.strip().splitlines()[-1]
