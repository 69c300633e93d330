"""Whole programs in the style of pycaffe's users, on handwritten digits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from caffe_layers import digits
from PIL import Image

import caffe
from caffe import layers as L
from caffe import params as P

XAVIER = dict(type="xavier")
CLASSES = list(range(10))


@pytest.fixture(autouse=True)
def quiet() -> None:
    caffe.init_log(2)
    caffe.set_random_seed(1)


def body(n: caffe.NetSpec, outputs: int, last: str = "score") -> None:
    """LeNet for 8x8 images, from n.data to n.score."""
    n.conv1 = L.Convolution(n.data, kernel_size=3, num_output=8, weight_filler=XAVIER)
    n.pool1 = L.Pooling(n.conv1, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.fc1 = L.InnerProduct(n.pool1, num_output=64, weight_filler=XAVIER)
    n.relu1 = L.ReLU(n.fc1, in_place=True)
    n[last] = L.InnerProduct(n.relu1, num_output=outputs, weight_filler=XAVIER)


def train_net(classes: list[int], last: str = "score") -> str:
    n = caffe.NetSpec()
    n.data, n.label = L.Python(
        module="caffe_layers", layer="DigitsLayer", ntop=2,
        param_str=json.dumps({"classes": classes, "batch": 50}),
    )  # fmt: skip
    body(n, len(classes), last)
    n.loss = L.SoftmaxWithLoss(n[last], n.label)
    n.accuracy = L.Accuracy(n[last], n.label, include=dict(phase=caffe.TEST))
    return str(n.to_proto())


def deploy_net() -> str:
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[10, 1, 8, 8]))
    body(n, len(CLASSES))
    n.prob = L.Softmax(n.score)
    return str(n.to_proto())


def solver_for(folder: Path, net: str, **more: object) -> str:
    (folder / "net.prototxt").write_text(net)
    fields = {
        "net": f"{folder}/net.prototxt", "snapshot_prefix": f"{folder}/model", "random_seed": 1,
        "base_lr": 0.02, "momentum": 0.9, "lr_policy": "fixed", "max_iter": 1000,
        "test_iter": 5, "test_interval": 500, **more,
    }  # fmt: skip
    lines = (f"{key}: {json.dumps(value)}" for key, value in fields.items())
    (folder / "solver.prototxt").write_text("\n".join(lines))
    return str(folder / "solver.prototxt")


def accuracy(net: caffe.Net, batches: int = 7) -> float:
    return float(np.mean([net.forward()["accuracy"] for _ in range(batches)]))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with deploy.prototxt and model.caffemodel, trained on all digits."""
    caffe.init_log(2)
    folder = tmp_path_factory.mktemp("trained")
    solver = caffe.SGDSolver(solver_for(folder, train_net(CLASSES)))
    solver.step(300)
    solver.net.save(str(folder / "model.caffemodel"))
    (folder / "deploy.prototxt").write_text(deploy_net())
    return folder


def test_learning_lenet(tmp_path: Path) -> None:
    """The loop of the notebook "learning LeNet": steps, losses, and a test by hand."""
    solver = caffe.get_solver(solver_for(tmp_path, train_net(CLASSES)))
    assert solver.net.blobs["conv1"].data.shape == (50, 8, 6, 6)
    solver.net.forward()
    solver.test_nets[0].forward()
    losses = []
    for _ in range(300):
        solver.step(1)
        losses.append(float(solver.net.blobs["loss"].data))
    assert np.mean(losses[-20:]) < 0.15 * losses[0]
    correct = 0
    for _ in range(7):
        solver.test_nets[0].forward(start="conv1")  # without running the data layer again
        solver.test_nets[0].forward()
        scores, labels = (solver.test_nets[0].blobs[name].data for name in ("score", "label"))
        correct += (scores.argmax(1) == labels).sum()
    assert correct / 350 > 0.93


def test_classification(trained: Path, tmp_path: Path) -> None:
    """The notebook "classification": Transformer, a changed batch size, features, the top class."""
    files = str(trained / "deploy.prototxt"), str(trained / "model.caffemodel")
    net = caffe.Net(*files, caffe.TEST)
    images, labels = digits()
    Image.fromarray((images[3, 0] * 255).astype(np.uint8)).save(tmp_path / "digit.png")
    transformer = caffe.io.Transformer({"data": net.blobs["data"].data.shape})
    transformer.set_transpose("data", (2, 0, 1))
    net.blobs["data"].reshape(50, 1, 8, 8)
    image = caffe.io.load_image(str(tmp_path / "digit.png"), color=False)
    net.blobs["data"].data[...] = transformer.preprocess("data", image)
    output = net.forward()
    assert output["prob"].shape == (50, 10)
    assert output["prob"][0].argmax() == labels[3]
    assert net.blobs["fc1"].data[7].shape == (64,)
    inputs = images[:100].transpose(0, 2, 3, 1)
    predictions = caffe.Classifier(*files).predict(inputs, oversample=False)
    assert (predictions.argmax(1) == labels[:100]).mean() > 0.93


def test_net_surgery(trained: Path, tmp_path: Path) -> None:
    """The notebook "net surgery": inner products become convolutions that accept larger images."""
    weights = str(trained / "model.caffemodel")
    net = caffe.Net(str(trained / "deploy.prototxt"), caffe.TEST, weights=weights)
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 1, 12, 10]))
    n.conv1 = L.Convolution(n.data, kernel_size=3, num_output=8)
    n.pool1 = L.Pooling(n.conv1, kernel_size=2, stride=2)
    n.fc1_conv = L.Convolution(n.pool1, kernel_size=3, num_output=64)
    n.relu1 = L.ReLU(n.fc1_conv, in_place=True)
    n.score_conv = L.Convolution(n.relu1, kernel_size=1, num_output=10)
    (tmp_path / "full.prototxt").write_text(str(n.to_proto()))
    full = caffe.Net(str(tmp_path / "full.prototxt"), weights, caffe.TEST)
    for name in ("fc1", "score"):
        full.params[name + "_conv"][0].data.flat = net.params[name][0].data.flat
        full.params[name + "_conv"][1].data[...] = net.params[name][1].data
    image = np.random.default_rng(0).random((12, 10), np.float32)
    scores = full.forward(data=image[None, None])["score_conv"][0]
    assert scores.shape == (10, 3, 2)
    for row in range(3):
        for column in range(2):
            window = image[2 * row : 2 * row + 8, 2 * column : 2 * column + 8]
            net.blobs["data"].data[...] = window
            net.forward()
            np.testing.assert_allclose(
                scores[:, row, column], net.blobs["score"].data[0], rtol=1e-3, atol=1e-4
            )


def test_fine_tuning(tmp_path: Path) -> None:
    """Weights of a net for 0 to 4 initialize a net for 5 to 9, whose last layer is renamed."""
    solver = caffe.SGDSolver(solver_for(tmp_path, train_net([0, 1, 2, 3, 4])))
    solver.step(150)
    weights = str(tmp_path / "low.caffemodel")
    solver.net.save(weights)
    path = solver_for(tmp_path, train_net([5, 6, 7, 8, 9], last="score_high"), base_lr=0.005)
    tuned, scratch = caffe.SGDSolver(path), caffe.SGDSolver(path)
    tuned.net.copy_from(weights)
    np.testing.assert_array_equal(
        tuned.net.params["conv1"][0].data, solver.net.params["conv1"][0].data
    )
    for each in (tuned, scratch):
        each.step(100)
    assert accuracy(tuned.test_nets[0], 3) > 0.9
    assert accuracy(tuned.test_nets[0], 3) >= accuracy(scratch.test_nets[0], 3) - 0.02


def test_linear_regression_with_a_loss_in_python(tmp_path: Path) -> None:
    n = caffe.NetSpec()
    n.x, n.y = L.DummyData(
        shape=[dict(dim=[10, 3, 2]), dict(dim=[10, 3, 2])], ntop=2,
        data_filler=[dict(type="gaussian"), dict(type="gaussian")],
    )  # fmt: skip
    n.ipx, n.ipy = (L.InnerProduct(top, num_output=10, weight_filler=XAVIER) for top in (n.x, n.y))
    n.loss = L.Python(n.ipx, n.ipy, module="caffe_layers", layer="EuclideanLoss", loss_weight=1)
    path = solver_for(tmp_path, str(n.to_proto()), base_lr=0.05)
    text = Path(path).read_text()
    Path(path).write_text(text.replace("test_iter: 5", "").replace("test_interval: 500", ""))
    solver = caffe.SGDSolver(path)
    solver.net.forward()
    before = float(solver.net.blobs["loss"].data[0])
    solver.step(500)
    assert float(solver.net.blobs["loss"].data[0]) < 1e-3 * before


def test_gradients_of_a_python_loss_are_those_of_the_built_in_one(tmp_path: Path) -> None:
    def net(loss: str) -> caffe.Net:
        text = (
            'force_backward: true layer { name: "a" type: "Input" top: "a" top: "b"'
            f" input_param {{ shape {{ dim: 4 dim: 3 }} }} }} {loss}"
        )
        (tmp_path / "net.prototxt").write_text(text)
        return caffe.Net(str(tmp_path / "net.prototxt"), caffe.TRAIN)

    ends = 'name: "l" bottom: "a" bottom: "b" top: "l" loss_weight: 3'
    mine = net(f'layer {{ {ends} type: "Python"'
               ' python_param { module: "caffe_layers" layer: "EuclideanLoss" } }')  # fmt: skip
    built_in = net(f'layer {{ {ends} type: "EuclideanLoss" }}')
    random = np.random.default_rng(0)
    inputs = {name: random.random((4, 3), np.float32) for name in "ab"}
    for each in (mine, built_in):
        each.forward(**inputs)
        each.backward()
    for name in "ab":
        np.testing.assert_allclose(
            mine.blobs[name].diff, built_in.blobs[name].diff, rtol=1e-5, atol=1e-7
        )


def test_drawing_a_net(tmp_path: Path) -> None:
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 1, 8, 8]))
    body(n, 10)
    caffe.draw.draw_net_to_file(n.to_proto(), str(tmp_path / "net.dot"), "TB", caffe.TEST)
    dot = (tmp_path / "net.dot").read_text()
    assert "rankdir=TB" in dot
    assert "conv1" in dot
    assert caffe.draw.draw_net(n.to_proto(), "LR", "dot").startswith(b"digraph")
