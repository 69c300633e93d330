"""LeNet learns handwritten digits with products in bfloat16 as it does in float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hearth import HearthError
from hearth.native import _caffe

pytestmark = pytest.mark.slow

NET = (Path(__file__).parents[2] / "examples" / "nets" / "lenet.prototxt").read_text()
SOLVER = 'base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: "fixed" random_seed: 7 '
BATCH = 64


def digits() -> tuple[np.ndarray, np.ndarray]:
    """The digits in 28 x 28, values in [0, 1], in random order; their labels."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images = np.kron(data.images / 16, np.ones((3, 3)))
    return np.pad(images, ((0, 0), (2, 2), (2, 2)))[order, None], data.target[order]


def accuracy(precision: str, iterations: int = 250) -> tuple[float, np.ndarray]:
    """Trains on two thirds of the digits; returns the accuracy on the others and the weights."""
    images, labels = digits()
    split = len(labels) * 2 // 3
    random = np.random.default_rng(1)

    def place(net: _caffe.Net) -> None:
        rows = random.integers(0, split, BATCH)
        net.blobs["data"].data[...] = images[rows]
        net.blobs["label"].data[...] = labels[rows]

    solver = _caffe.Solver(
        f"{SOLVER} display: 0 max_iter: {iterations} net_param {{ {NET} }}",
        before_forward=place,
        precision=precision,
    )
    solver.step(iterations)
    net, right = solver.net, 0
    held_out = np.arange(split, len(labels))
    for start in range(0, len(held_out), BATCH):
        rows = np.resize(held_out[start:], BATCH)
        net.blobs["data"].data[...] = images[rows]
        net.blobs["label"].data[...] = labels[rows]
        net.forward()
        guesses = net.blobs["ip2"].data.argmax(axis=1)
        counted = min(BATCH, len(held_out) - start)
        right += int((guesses == labels[rows])[:counted].sum())
    return right / len(held_out), net.params["conv1"][0].data.copy()


def test_bfloat16_costs_less_than_half_a_point_of_accuracy_or_is_refused_without_avx512():
    if "avx512bw" not in Path("/proc/cpuinfo").read_text():
        with pytest.raises(HearthError, match=r"'conv1'.*oneDNN supports no bfloat16"):
            accuracy("bf16", 1)
        return
    exact, exact_weights = accuracy("float32")
    rounded, rounded_weights = accuracy("bf16")
    assert exact >= 0.97
    assert rounded >= exact - 0.005
    assert not np.array_equal(exact_weights, rounded_weights), "nothing was rounded"


def test_a_precision_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="float32 or bf16, not 'half'"):
        _caffe.Solver(f"{SOLVER} net_param {{ {NET} }}", precision="half")
