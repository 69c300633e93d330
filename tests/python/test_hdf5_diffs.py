"""HDF5 models contain, as in Caffe, a diff for every parameter of every layer, even if shared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hearth import caffe

PRODUCT = (
    'inner_product_param { num_output: 3 weight_filler { type: "xavier" } } '
    'param { name: "w" } param { name: "b" } '
)
NET = f"""
layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ dim: 2 dim: 3 }} }} }}
layer {{ name: "one" type: "InnerProduct" bottom: "x" top: "y" {PRODUCT} }}
layer {{ name: "two" type: "InnerProduct" bottom: "y" top: "z" loss_weight: 1 {PRODUCT} }}
"""


@pytest.mark.parametrize("trained", [False, True])
def test_every_layer_that_shares_a_parameter_has_its_diff(tmp_path: Path, trained: bool) -> None:
    h5py = pytest.importorskip("h5py")
    (tmp_path / "net.prototxt").write_text(NET)
    net = caffe.Net(str(tmp_path / "net.prototxt"), caffe.TRAIN)
    if trained:  # otherwise the diffs are zero
        net.forward(x=np.ones((2, 3)))
        net.backward()
    net.save_hdf5(tmp_path / "a.h5", write_diff=True)
    with h5py.File(tmp_path / "a.h5") as saved:
        assert list(saved["data/two"]) == []
        for layer in ("one", "two"):
            for i, blob in enumerate(net.params["one"]):
                diff = saved[f"diff/{layer}/{i}"][()]
                assert diff.any() == trained
                np.testing.assert_array_equal(diff, blob.diff)
