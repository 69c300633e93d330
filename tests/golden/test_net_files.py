"""Layers that read and write files, compared with BVLC Caffe."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from golden import DATA, Case, cases

from hearth.native import _caffe

CASES = cases("net_files")


@pytest.fixture(autouse=True)
def in_data_copy(tmp_path: Path) -> Iterator[None]:
    """Runs in a copy of the data folder: names are relative to it, and one file is written."""
    shutil.copytree(DATA / "files", tmp_path / "files")
    before = os.getcwd()
    os.chdir(tmp_path)
    yield
    os.chdir(before)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_layer_delivers_the_batches_of_caffe(case: Case) -> None:
    net = _caffe.Net(case["prototxt"], case["phase"])
    arrays = case.arrays()
    for key, value in arrays.items():
        if key.startswith("input/"):
            net.blobs[key.removeprefix("input/")].data[...] = value
    for step in range(case["steps"]):
        net.forward()
        prefix = f"step{step}/data/" if case["steps"] > 1 else "data/"
        for key, expected in arrays.items():
            if key.startswith(prefix):
                case.close(net.blobs[key.removeprefix(prefix)].data, expected, key)


def test_the_same_file_is_written_as_by_caffe() -> None:
    h5py = pytest.importorskip("h5py")
    (case,) = (case for case in CASES if case.name == "hdf5_output")
    net = _caffe.Net(case["prototxt"], case["phase"])
    for name in ("d", "l"):
        net.blobs[name].data[...] = case.arrays()[f"input/{name}"]
    net.forward()
    del net
    with h5py.File("files/written.h5") as ours, h5py.File(DATA / "files/written.h5") as caffes:
        assert sorted(ours) == sorted(caffes)
        for name in caffes:
            assert ours[name].dtype == caffes[name].dtype
            np.testing.assert_array_equal(ours[name][...], caffes[name][...])
