"""caffe.Net: its structure, array views, partial runs and weights."""

from __future__ import annotations

import gc
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from hearth import HearthError, caffe

NET = """
name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 4 dim: 3 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 4 } } }
layer {
  name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } }
}
layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
layer {
  name: "only_a" type: "Power" bottom: "ip" top: "doubled" power_param { scale: 2 }
  include { stage: "a" min_level: 2 }
}
layer {
  name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" loss_weight: 2
}
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "net.prototxt"
    file.write_text(NET)
    return file


@pytest.fixture
def net(path: Path) -> caffe.Net:
    caffe.set_random_seed(3)
    return caffe.Net(str(path), caffe.TEST)


def arrays(count: int = 4) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {"data": random.normal(size=(count, 3)).astype("f"), "label": np.arange(count) % 2}


def test_structure_is_reported_by_name(net: caffe.Net) -> None:
    splits = "ip_relu_0_split"
    assert list(net.blobs) == ["data", "label", "ip", f"{splits}_0", f"{splits}_1", "loss", "prob"]
    assert net._layer_names == ["data", "label", "ip", "relu", splits, "loss", "prob"]
    assert net.inputs == ["data", "label"]
    assert net.outputs == ["loss", "prob"]
    assert net.top_names["ip"] == ["ip"]
    assert net.bottom_names["loss"] == [f"{splits}_0", "label"]
    assert net.blob_loss_weights["loss"] == 2
    assert net.blob_loss_weights["prob"] == 0
    assert net.name == "small"
    assert net.layer_dict["ip"].type == "InnerProduct"
    assert [layer.type for layer in net.layers][:3] == ["Input", "Input", "InnerProduct"]
    assert list(net.params) == ["ip"]
    assert [tuple(blob.shape) for blob in net.params["ip"]] == [(2, 3), (2,)]
    assert [tuple(blob.shape) for blob in net.layers[2].blobs] == [(2, 3), (2,)]


def test_structure_is_reported_by_position(net: caffe.Net) -> None:
    names = net._blob_names
    assert [names[i] for i in net._inputs] == net.inputs
    assert [names[i] for i in net._outputs] == net.outputs
    for place, layer in enumerate(net._layer_names):
        assert [names[i] for i in net._bottom_ids(place)] == net.bottom_names[layer]
        assert [names[i] for i in net._top_ids(place)] == net.top_names[layer]
    assert net._bottom_ids(3) == net._top_ids(3) == [2]  # works in place
    assert [tuple(blob.shape) for blob in net._blobs[:3]] == [(4, 3), (4,), (4, 2)]
    assert net._blob_loss_weights == [0, 0, 0, 0, 0, 2, 0]


def test_level_and_stages_choose_layers(path: Path) -> None:
    assert "doubled" in caffe.Net(str(path), caffe.TEST, level=2, stages=["a", "b"]).blobs
    assert "doubled" in caffe.Net(str(path), caffe.TEST, 2, ["a"]).blobs
    assert "doubled" not in caffe.Net(str(path), caffe.TEST, level=1, stages=["a"]).blobs


def test_layers_get_the_phase(tmp_path: Path) -> None:
    file = tmp_path / "net.prototxt"
    file.write_text(
        'layer { name: "a" type: "Input" top: "a" include { phase: TRAIN } }'
        'layer { name: "b" type: "Input" top: "b" include { phase: TEST } }'
    )
    assert caffe.Net(str(file), caffe.TRAIN).inputs == ["a"]
    assert caffe.Net(file, phase=caffe.TEST).inputs == ["b"]


def test_weights_load_in_every_constructor(net: caffe.Net, path: Path, tmp_path: Path) -> None:
    weights = str(tmp_path / "w.caffemodel")
    net.save(weights)
    for loaded in (
        caffe.Net(str(path), weights, caffe.TEST),
        caffe.Net(str(path), caffe.TEST, weights=weights),
        caffe.Net(str(path), weights=weights, phase=caffe.TEST),
        caffe.Net(network_file=str(path), phase=caffe.TEST, weights=Path(weights)),
    ):
        np.testing.assert_array_equal(loaded.params["ip"][0].data, net.params["ip"][0].data)


def test_seed_makes_fillers_repeatable(path: Path) -> None:
    def weights(seed: int) -> np.ndarray:
        caffe.set_random_seed(seed)
        return caffe.Net(str(path), caffe.TEST).params["ip"][0].data

    assert np.array_equal(weights(5), weights(5))
    assert not np.array_equal(weights(5), weights(6))


def test_wrong_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing\.prototxt"):
        caffe.Net(str(tmp_path / "missing.prototxt"), caffe.TEST)
    bad = tmp_path / "bad.prototxt"
    bad.write_text('layer { name: "x" tpye: "ReLU" }')
    with pytest.raises(ValueError, match=r"bad\.prototxt:1:\d+.*type"):
        caffe.Net(str(bad), caffe.TEST)
    with pytest.raises(ValueError, match="phase 7"):
        caffe.Net(str(bad), 7)


def test_views_are_the_nets_memory(net: caffe.Net) -> None:
    net.blobs["data"].data[...] = 1
    net.params["ip"][0].data[...] = [[1, 2, 3], [0, 0, -1]]
    net.params["ip"][1].data[...] = [0.5, 0]
    net.forward(end="ip")
    np.testing.assert_array_equal(net.blobs["ip"].data, [[6.5, -1]] * 4)
    first, second = net.blobs["ip"].data, net.blobs["ip"].data
    first[0, 0] = 9
    assert second[0, 0] == 9
    assert first.dtype == np.float32


def test_views_outlive_net_and_blob(net: caffe.Net) -> None:
    view = net.blobs["data"].data
    blob = net.blobs["label"]
    view[...] = 7
    net.blobs["data"].reshape(100, 3)
    del net
    gc.collect()
    assert (view == 7).all()
    assert blob.data.shape == (4,)  # a blob keeps its net alive


def test_blob_shape_is_reported_and_changed(net: caffe.Net) -> None:
    blob = net.blobs["data"]
    blob.reshape(2, 3, 5, 7)
    assert (blob.num, blob.channels, blob.height, blob.width) == (2, 3, 5, 7)
    assert blob.count == 210
    blob.reshape((2, 3))
    assert tuple(blob.shape) == (2, 3)
    assert (blob.height, blob.width) == (1, 1)
    blob.reshape(1, 1, 1, 1, 2)
    with pytest.raises(ValueError, match="use shape"):
        blob.num  # noqa: B018
    with pytest.raises(ValueError, match="-1"):
        blob.reshape(-1)


def test_forward_takes_inputs_and_returns_views(net: caffe.Net) -> None:
    given = arrays()
    outputs = net.forward(**given)
    assert set(outputs) == {"loss", "prob"}
    np.testing.assert_array_equal(net.blobs["data"].data, given["data"])
    np.testing.assert_allclose(outputs["prob"].sum(1), 1, rtol=1e-6)
    expected = -np.log(outputs["prob"][np.arange(4), given["label"]]).mean()
    np.testing.assert_allclose(outputs["loss"], expected, rtol=1e-6)
    outputs["prob"][...] = 0
    assert (net.blobs["prob"].data == 0).all()
    assert set(net.forward(blobs=["ip"])) == {"loss", "prob", "ip"}


def test_inputs_that_do_not_fit_are_refused(net: caffe.Net) -> None:
    with pytest.raises(ValueError, match=r"\['data'\].*\['data', 'label'\]"):
        net.forward(data=np.zeros((4, 3)))
    with pytest.raises(ValueError, match="forward_all"):
        net.forward(data=np.zeros((5, 3)), label=np.zeros(5))


def test_forward_runs_the_layers_asked_for(net: caffe.Net) -> None:
    net.forward(**arrays())
    net.blobs["ip"].data[...] = [[1, 0]] * 4
    loss = net.forward(start="relu")["loss"]  # uses the values just written
    net.blobs["data"].data[...] = 100
    outputs = net.forward(start="relu", end="prob")
    assert set(outputs) == {"prob"}
    np.testing.assert_allclose(outputs["prob"][0], [0.7310586, 0.2689414], rtol=1e-6)
    np.testing.assert_allclose(loss, np.log(1 + np.exp([-1, 1])).mean(), rtol=1e-6)
    assert set(net.forward(end="ip")) == {"ip"}
    with pytest.raises(ValueError, match=r"no layer 'nope'.*ip"):
        net.forward(start="nope")


def test_backward_gives_gradients(path: Path) -> None:
    path.write_text("force_backward: true" + NET.split('layer { name: "prob"')[0])
    net = caffe.Net(str(path), caffe.TRAIN)
    given = arrays()
    net.forward(**given)
    net.clear_param_diffs()
    diffs = net.backward(diffs=["ip"])
    assert set(diffs) == {"data", "label", "ip"}
    once = net.params["ip"][0].diff.copy()
    assert np.abs(once).max() > 0
    np.testing.assert_allclose(diffs["data"], diffs["ip"] @ net.params["ip"][0].data, rtol=1e-4)
    net.backward()
    np.testing.assert_allclose(net.params["ip"][0].diff, 2 * once, rtol=1e-6)
    held = net.params["ip"][0].diff
    net.clear_param_diffs()
    assert (held == 0).all()  # an existing array shows the change
    net.backward(start="loss", end="relu")
    assert (net.params["ip"][0].diff == 0).all()  # the pass ended before this layer
    net.backward(loss=np.float32(0))
    assert (net.params["ip"][0].diff == 0).all()


def test_a_gradient_that_is_held_before_the_first_backward_shows_it(path: Path) -> None:
    path.write_text("force_backward: true" + NET.split('layer { name: "prob"')[0])
    net = caffe.Net(str(path), caffe.TRAIN)
    held = net.params["ip"][0].diff
    assert (held == 0).all()
    net.forward(**arrays())
    net.backward()
    assert np.abs(held).max() > 0
    np.testing.assert_array_equal(held, net.params["ip"][0].diff)


def test_forward_all_pads_the_last_batch_and_cuts_it(net: caffe.Net) -> None:
    given = arrays(11)
    outputs = net.forward_all(blobs=["ip"], **given)
    assert outputs["prob"].shape == (11, 2)
    assert outputs["loss"].shape == (3,)
    x = given["data"] @ net.params["ip"][0].data.T
    np.testing.assert_allclose(outputs["ip"], np.maximum(x, 0), rtol=1e-5, atol=1e-6)


def test_forward_backward_all_joins_both(path: Path) -> None:
    path.write_text(NET.split('layer {\n  name: "loss"')[0] + "force_backward: true")
    net = caffe.Net(str(path), caffe.TEST)
    data = arrays(6)
    data["ip"] = np.ones((6, 2), "f")
    outputs, diffs = net.forward_backward_all(**data)
    expected = (outputs["ip"] > 0) @ net.params["ip"][0].data
    np.testing.assert_allclose(diffs["data"], expected, rtol=1e-5)
    with pytest.raises(ValueError, match="same number of items"):
        net.forward_all(data=np.zeros((2, 3)), label=np.zeros(3))


def test_reshape_follows_the_inputs(net: caffe.Net) -> None:
    net.blobs["data"].reshape(9, 3)
    net.blobs["label"].reshape(9)
    net.reshape()
    assert net.blobs["prob"].data.shape == (9, 2)
    assert net.forward(**arrays(9))["prob"].shape == (9, 2)


def test_sharing_weights_is_without_a_copy(net: caffe.Net, path: Path) -> None:
    other = caffe.Net(str(path), caffe.TEST)
    other.share_with(net)
    net.params["ip"][0].data[0, 0] = 42
    assert other.params["ip"][0].data[0, 0] == 42
    del net
    gc.collect()
    assert other.params["ip"][0].data[0, 0] == 42


def test_copied_weights_are_a_copy(net: caffe.Net, path: Path, tmp_path: Path) -> None:
    net.save(str(tmp_path / "a.caffemodel"))
    other = caffe.Net(str(path), caffe.TEST)
    other.copy_from(str(tmp_path / "a.caffemodel"))
    expected = net.params["ip"][0].data.copy()
    net.params["ip"][0].data[...] = 0
    np.testing.assert_array_equal(other.params["ip"][0].data, expected)


def test_hdf5_weights_round_trip(net: caffe.Net, path: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "a.caffemodel.h5")
    net.save_hdf5(file)
    other = caffe.Net(str(path), caffe.TEST)
    other.load_hdf5(file)
    np.testing.assert_array_equal(other.params["ip"][0].data, net.params["ip"][0].data)
    again = caffe.Net(str(path), caffe.TEST)
    again.copy_from(file)
    np.testing.assert_array_equal(again.params["ip"][0].data, net.params["ip"][0].data)
    net.params["ip"][1].diff[...] = [3, 4]
    net.save_hdf5(file, True)
    import h5py

    with h5py.File(file) as stored:
        np.testing.assert_array_equal(stored["diff/ip/1"], [3, 4])
    again.load_hdf5(file)
    np.testing.assert_array_equal(again.params["ip"][0].data, net.params["ip"][0].data)


def test_callbacks_run_before_and_after_every_layer(net: caffe.Net) -> None:
    calls: list[tuple[str, int]] = []
    net.before_forward(lambda i: calls.append(("bf", i)))
    net.after_forward(lambda i: calls.append(("af", i)))
    net.before_backward(lambda i: calls.append(("bb", i)))
    net.after_backward(lambda i: calls.append(("ab", i)))
    net.forward(start="ip", end="relu")
    net.backward(start="relu", end="ip")
    assert calls == [("bf", 2), ("af", 2), ("bf", 3), ("af", 3),
                     ("bb", 3), ("ab", 3), ("bb", 2), ("ab", 2)]  # fmt: skip


def test_a_failing_callback_ends_the_call(net: caffe.Net) -> None:
    def fail(index: int) -> None:
        raise KeyError(index)

    net.before_forward(fail)
    with pytest.raises(KeyError):
        net.forward()


def test_memory_data_delivers_the_arrays(tmp_path: Path) -> None:
    file = tmp_path / "net.prototxt"
    file.write_text(
        'layer { name: "data" type: "MemoryData" top: "data" top: "label"'
        " memory_data_param { batch_size: 2 channels: 1 height: 2 width: 2 } }"
    )
    net = caffe.Net(str(file), caffe.TEST)
    data = np.arange(16).reshape(4, 1, 2, 2)
    net.set_input_arrays(data, [0, 1, 2, 3])
    net.forward()
    outputs = net.forward()
    np.testing.assert_array_equal(outputs["data"], data[2:])
    np.testing.assert_array_equal(outputs["label"].ravel(), [2, 3])
    with pytest.raises(ValueError, match="multiple of batch_size"):
        net.set_input_arrays(data[:3], [0, 1, 2])


def test_a_wrong_shape_names_the_layer(net: caffe.Net) -> None:
    net.blobs["data"].reshape(4, 5)
    with pytest.raises((ValueError, HearthError), match="layer 'ip'"):
        net.forward()


def test_layers_can_be_reshaped_by_hand(net: caffe.Net) -> None:
    net.blobs["data"].reshape(6, 3)
    net.layer_dict["ip"].reshape([net.blobs["data"]], [net.blobs["ip"]])
    assert tuple(net.blobs["ip"].shape) == (6, 2)


def test_forward_releases_the_gil(tmp_path: Path) -> None:
    file = tmp_path / "net.prototxt"
    file.write_text(
        'layer { name: "x" type: "DummyData" top: "x" dummy_data_param { shape { dim: 4000000 } '
        'data_filler { type: "gaussian" } } }'
    )
    net = caffe.Net(str(file), caffe.TEST)
    enough, switches = threading.Event(), 0

    def forward() -> None:
        for _ in range(100):
            if not enough.is_set():
                net.forward()

    thread = threading.Thread(target=forward)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # threads switch only if the core releases the GIL
    try:
        thread.start()
        while thread.is_alive():
            time.sleep(0.001)
            switches += 1
            if switches > 20:
                enough.set()
    finally:
        sys.setswitchinterval(interval)
    assert switches > 20


def test_a_batch_may_be_empty_for_a_while(tmp_path: Path) -> None:
    file = tmp_path / "net.prototxt"
    file.write_text(
        'layer { name: "x" type: "Input" top: "x" input_param {'
        " shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }"
        'layer { name: "c" type: "Convolution" bottom: "x" top: "c"'
        " convolution_param { num_output: 4 kernel_size: 3 } }"
    )
    net = caffe.Net(str(file), caffe.TEST)
    for rows in (2, 0, 1):
        net.blobs["x"].reshape(rows, 3, 8, 8)
        net.forward()
        assert net.blobs["c"].data.shape == (rows, 4, 6, 6)
