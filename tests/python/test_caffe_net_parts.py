"""caffe.Net: single layers, and nets that need no inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hearth import caffe

NET = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 4 dim: 3 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "ip" top: "relu" }
"""


def make(folder: Path, text: str) -> caffe.Net:
    (folder / "net.prototxt").write_text(text)
    return caffe.Net(str(folder / "net.prototxt"), caffe.TRAIN)


def test_a_single_layer_runs_on_the_values_of_its_blobs(tmp_path: Path) -> None:
    net = make(tmp_path, "force_backward: true" + NET)
    weights, bias = net.params["ip"]
    data, diff = net.blobs["data"], net.blobs["ip"].diff
    data.data[...] = np.random.default_rng(1).normal(size=(4, 3))
    top = net.forward(start="ip", end="ip")["ip"]
    np.testing.assert_allclose(top, data.data @ weights.data.T + bias.data, rtol=1e-5, atol=1e-6)
    diff[...] = np.random.default_rng(2).normal(size=(4, 2))
    bottoms = net.backward(start="ip", end="ip")
    assert list(bottoms) == ["data"]
    np.testing.assert_allclose(bottoms["data"], diff @ weights.data, rtol=1e-5, atol=1e-6)


def test_a_net_with_data_layers_has_no_inputs(tmp_path: Path) -> None:
    net = make(
        tmp_path,
        'layer { name: "d" type: "DummyData" top: "a" top: "b" dummy_data_param {'
        " num: 2 channels: 3 height: 4 width: 5 num: 2 channels: 1 height: 1 width: 1 } }"
        'layer { name: "s" type: "Silence" bottom: "a" bottom: "b" }',
    )
    assert (net.inputs, net.outputs, net.forward()) == ([], [], {})
    assert net.top_names == {"d": ["a", "b"], "s": []}
    assert net.blobs["a"].data.shape == (2, 3, 4, 5)
