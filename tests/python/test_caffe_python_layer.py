"""Layers of type Python: a net runs the user's class."""

from __future__ import annotations

import gc
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hearth import HearthError, caffe

import program  # isort: skip


class Scaled(caffe.Layer):
    """Multiplies its bottom by param_str, and learns an offset."""

    def setup(self, bottom: Any, top: Any) -> None:
        self.factor = float(self.param_str)
        self.blobs.add_blob(1)

    def reshape(self, bottom: Any, top: Any) -> None:
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom: Any, top: Any) -> None:
        top[0].data[...] = self.factor * bottom[0].data + self.blobs[0].data
        self.seen = bottom[0]

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        self.propagate_down = propagate_down
        bottom[0].diff[...] = self.factor * top[0].diff
        self.blobs[0].diff[...] += top[0].diff.sum()


class Broken(caffe.Layer):
    """A layer that raises in the method that param_str names."""

    def reshape(self, bottom: Any, top: Any) -> None:
        top[0].reshape(1)

    def forward(self, bottom: Any, top: Any) -> None:
        if self.param_str == "interrupt":
            signal.raise_signal(signal.SIGINT)
        raise RuntimeError("nothing works today")


class Tenfold(caffe.Layer):
    def reshape(self, bottom: Any, top: Any) -> None:
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom: Any, top: Any) -> None:
        top[0].data[...] = 10 * bottom[0].data

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        bottom[0].diff[...] = 10 * top[0].diff


class Counter(caffe.Layer):
    """Produces 0, 1, 2, ... in batches of three, and has one parameter but no bottom."""

    def setup(self, bottom: Any, top: Any) -> None:
        top[0].reshape(3)
        self.blobs.add_blob(1)
        self.reset()

    def reset(self) -> None:
        self.next = 0

    def reshape(self, bottom: Any, top: Any) -> None:
        pass

    def forward(self, bottom: Any, top: Any) -> None:
        top[0].data[...] = range(self.next, self.next + 3)
        self.next += 3

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        self.blobs[0].diff[0] = 1


class PhaseTeller(caffe.Layer):
    def __init__(self, prototxt: str) -> None:
        super().__init__(prototxt)
        self.prototxt = prototxt

    def reshape(self, bottom: Any, top: Any) -> None:
        top[0].reshape(1)

    def forward(self, bottom: Any, top: Any) -> None:
        top[0].data[0] = self.phase

    def set_value(self, value: float) -> None:
        self.value = value


def python_layer(name: str, kind: str, param: str = "", bottom: str = 'bottom: "data"') -> str:
    return (
        f'layer {{ name: "{name}" type: "Python" {bottom} top: "{name}" python_param {{'
        f' module: "{__name__}" layer: "{kind}" param_str: "{param}" }} }}'
    )


def make(folder: Path, *layers: str, phase: int = caffe.TRAIN) -> caffe.Net:
    file = folder / "net.prototxt"
    shape = "input_param { shape { dim: 2 dim: 3 } }"
    data = f'layer {{ name: "data" type: "Input" top: "data" {shape} }}'
    file.write_text("force_backward: true\n" + "\n".join([data, *layers]))
    return caffe.Net(str(file), phase)


def test_forward_and_backward_run_the_class(tmp_path: Path) -> None:
    net = make(tmp_path, python_layer("a", "Scaled", "10"))
    net.params["a"][0].data[...] = 0.5
    out = net.forward(data=np.ones((2, 3), "f"))
    np.testing.assert_array_equal(out["a"], np.full((2, 3), 10.5))
    diffs = net.backward(a=np.full((2, 3), 2, "f"))
    np.testing.assert_array_equal(diffs["data"], np.full((2, 3), 20))
    assert net.params["a"][0].diff[0] == 12
    assert net.layers[1].propagate_down == [True]


def test_the_net_returns_the_users_layer_object(tmp_path: Path) -> None:
    net = make(tmp_path, python_layer("a", "PhaseTeller", "text"), phase=caffe.TEST)
    layer = net.layer_dict["a"]
    layer.set_value(3)
    assert (type(layer).__name__, layer.value, layer.param_str) == ("PhaseTeller", 3, "text")
    assert (layer.name, layer.type) == ("a", "Python")
    assert 'name: "a"' in layer.prototxt
    assert net.forward()["a"][0] == caffe.TEST
    assert make(tmp_path, python_layer("a", "PhaseTeller")).forward()["a"][0] == caffe.TRAIN


def test_layers_in_a_row_follow_the_inputs_shape(tmp_path: Path) -> None:
    pairs = pairwise(["data", "one", "two", "three"])
    net = make(tmp_path, *(python_layer(b, "Tenfold", "", f'bottom: "{a}"') for a, b in pairs))
    net.blobs["data"].data[...] = 8
    assert (net.forward()["three"] == 8000).all()
    net.blobs["three"].diff[...] = 7
    assert (net.backward()["data"] == 7000).all()
    net.blobs["data"].reshape(4, 4, 4, 4)
    net.forward()
    assert {blob.data.shape for blob in net.blobs.values()} == {(4, 4, 4, 4)}


def test_a_layer_without_bottoms_keeps_state_and_learns(tmp_path: Path) -> None:
    net = make(tmp_path, python_layer("a", "Counter", bottom=""))
    assert [net.forward()["a"].tolist() for _ in range(2)] == [[0, 1, 2], [3, 4, 5]]
    net.layer_dict["a"].reset()
    assert net.forward()["a"].tolist() == [0, 1, 2]
    net.backward()
    weight = net.layer_dict["a"].blobs[0]
    assert (weight.data[0], weight.diff[0]) == (0, 1)
    weight.data[...] += weight.diff
    net.save(str(tmp_path / "w.caffemodel"))
    weight.data[...] = -1
    net.copy_from(str(tmp_path / "w.caffemodel"))
    assert net.params["a"][0].data[0] == 1


def test_an_exception_names_layer_and_line(tmp_path: Path) -> None:
    net = make(tmp_path, python_layer("mine", "Broken"))
    with pytest.raises(HearthError) as raised:
        net.forward()
    message = str(raised.value)
    assert "layer 'mine' (Python), forward" in message
    assert "RuntimeError: nothing works today" in message
    assert 'raise RuntimeError("nothing works today")' in message
    assert Path(__file__).name in message


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (python_layer("mine", "Missing"), "has no class 'Missing'"),
        (python_layer("mine", "Scaled", "ten"), "could not convert string to float: 'ten'"),
        (python_layer("mine", "Scaled", "1").replace(__name__, "no_such_module"), "no_such_module"),
    ],
)
def test_a_layer_that_cannot_be_made_is_named(tmp_path: Path, layer: str, said: str) -> None:
    with pytest.raises(HearthError, match="(?s)layer 'mine' .*setting up.*" + said):
        make(tmp_path, layer)


def test_a_method_that_is_not_written_is_named(tmp_path: Path) -> None:
    net = make(tmp_path, python_layer("a", "PhaseTeller"))
    net.forward()
    with pytest.raises(HearthError, match="PhaseTeller has no method backward"):
        net.backward()


def test_interrupting_a_layer_is_a_keyboard_interrupt(tmp_path: Path) -> None:
    net = make(tmp_path, python_layer("a", "Broken", "interrupt"))
    with pytest.raises(KeyboardInterrupt):
        try:
            net.forward()
        except HearthError:
            for _ in range(1000):
                pass
            raise


def test_blobs_kept_by_a_layer_end_with_the_net(tmp_path: Path) -> None:
    net = make(tmp_path, python_layer("a", "Scaled", "1"))
    net.forward()
    layer = net.layers[1]
    kept, view = layer.seen, layer.seen.data
    assert kept.shape == (2, 3)
    del net
    gc.collect()
    view[...] = 1  # the array has its own memory
    with pytest.raises(ValueError, match="net of this blob was destroyed"):
        kept.data  # noqa: B018
    with pytest.raises(ValueError, match="net of this layer was destroyed"):
        len(layer.blobs)


def test_the_layer_ends_with_its_net(tmp_path: Path) -> None:
    import weakref

    net = make(tmp_path, python_layer("a", "Scaled", "1"))
    net.forward()
    alive = weakref.ref(net.layers[1])
    del net
    gc.collect()
    assert alive() is None


def test_parameters_are_saved_and_loaded(tmp_path: Path) -> None:
    net = make(tmp_path, python_layer("a", "Scaled", "1"))
    net.params["a"][0].data[...] = 7
    net.save(str(tmp_path / "w.caffemodel"))
    other = make(tmp_path, python_layer("a", "Scaled", "1"))
    other.copy_from(str(tmp_path / "w.caffemodel"))
    assert other.params["a"][0].data[0] == 7


def test_the_program_trains_them_in_an_interpreter(tmp_path: Path) -> None:
    (tmp_path / "layers_here.py").write_text(
        "import caffe\n"
        "class Half(caffe.Layer):\n"
        "    def reshape(self, bottom, top): top[0].reshape(*bottom[0].data.shape)\n"
        "    def forward(self, bottom, top): top[0].data[...] = bottom[0].data / 2\n"
        "    def backward(self, top, down, bottom): bottom[0].diff[...] = top[0].diff / 2\n"
    )
    layer = python_layer("half", "Half", bottom='bottom: "y"').replace(__name__, "layers_here")
    head, loss = program.NET.split('layer { name: "loss"')
    loss = 'layer { name: "loss"' + loss.replace('bottom: "y"', 'bottom: "half"')
    program.write_solver(tmp_path, "display: 5", head + layer + loss)
    log = program.run("train", "--solver=solver.prototxt", cwd=tmp_path)
    assert "Optimization Done." in log
    lines = program.messages(log)
    losses = [float(line.rpartition(" ")[2]) for line in lines if ", loss = " in line]
    assert losses[-1] < losses[0] / 2
    assert "half\tforward:" in program.run("time", "--model=net.prototxt", cwd=tmp_path)
