"""Published networks learn handwritten digits, given in each net's kind of input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from published_nets import net_text
from sklearn.datasets import load_digits

from hearth.native import _caffe

pytestmark = pytest.mark.slow

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
STEPS = 20

Inputs = dict[str, np.ndarray]


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """All digits (8 x 8, values in [0, 1]) in random order, and their labels."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    return (data.images / 16)[order], data.target[order]


def images(rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Digits around zero, enlarged as far as `shape` (rows, channels, height, width) allows."""
    scale = shape[2] // 8
    large = np.kron(digits()[0][rows], np.ones((scale, scale)))
    missing = shape[2] - large.shape[1]
    around = (missing // 2, missing - missing // 2)
    return np.repeat(np.pad(large, ((0, 0), around, around))[:, None], shape[1], axis=1) - 0.3


def classify(rows: np.ndarray, shapes: dict[str, tuple[int, ...]]) -> Inputs:
    return {"data": images(rows, shapes["data"]), "label": digits()[1][rows]}


def encode(rows: np.ndarray, shapes: dict[str, tuple[int, ...]]) -> Inputs:
    return {"data": images(rows, shapes["data"]) + 0.3}


def compare(rows: np.ndarray, shapes: dict[str, tuple[int, ...]]) -> Inputs:
    """Pairs for a Siamese net; in every other pair both digits have the same label."""
    labels = digits()[1]
    partners = rows[::-1].copy()
    for i in range(0, len(rows), 2):
        same = np.flatnonzero(labels == labels[rows[i]])
        partners[i] = same[rows[i] % len(same)]
    return {
        "data": images(rows, shapes["data"]),
        "data_p": images(partners, shapes["data"]),
        "sim": labels[rows] == labels[partners],
    }


def describe(rows: np.ndarray, shapes: dict[str, tuple[int, ...]]) -> Inputs:
    """Captions: each digit's name, letter by letter, then 0 as its end."""
    said = np.full((STEPS, len(rows)), -1)
    for i, label in enumerate(digits()[1][rows]):
        letters = [ord(letter) - ord("a") + 1 for letter in WORDS[label]]
        said[: len(letters) + 1, i] = [*letters, 0]
    before = np.roll(said, 1, axis=0)
    before[0] = 0
    return {
        "cont_sentence": np.arange(STEPS)[:, None] > np.zeros(len(rows)),
        "input_sentence": np.maximum(before, 0),
        "target_sentence": said,
        "image_features": np.kron(digits()[0][rows], np.ones((2, 2))).reshape(len(rows), 256),
    }


def predict_lines(rows: np.ndarray, shapes: dict[str, tuple[int, ...]]) -> Inputs:
    """A digit's rows of pixels from top to bottom, enlarged; each row's target is the next row."""
    lines = np.kron(digits()[0][rows], np.ones((1, 3, 16)))[:, : STEPS + 1].transpose(1, 0, 2)
    return {
        "data": lines[:STEPS],
        "cont": np.arange(STEPS)[:, None] > np.zeros(len(rows)),
        "target": lines[1:],
    }


@dataclass(frozen=True)
class Training:
    """A net's inputs and solver settings; its loss must fall to the fraction `share`."""

    name: str
    inputs: Callable[[np.ndarray, dict[str, tuple[int, ...]]], Inputs]
    batch: int
    iterations: int
    solver: str
    share: float = 0.5


SGD = "momentum: 0.9 base_lr: "
ADAM = "type: 'Adam' momentum: 0.9 base_lr: "
TRAININGS = [
    Training("lenet", classify, 64, 60, SGD + "0.01", 0.3),
    Training("cifar10_quick", classify, 32, 60, SGD + "0.005"),
    Training("cifar10_full", classify, 32, 60, SGD + "0.005"),
    Training("alexnet", classify, 8, 40, SGD + "0.004"),
    Training("caffenet", classify, 8, 40, SGD + "0.001"),
    Training("googlenet", classify, 8, 30, SGD + "0.002"),
    Training("mnist_autoencoder", encode, 64, 60, ADAM + "0.001", 0.6),
    Training("mnist_siamese", compare, 64, 60, SGD + "0.01"),
    Training("lrcn", describe, 16, 60, ADAM + "0.003"),
    Training("lstm3", predict_lines, 32, 60, ADAM + "0.003"),
]
LARGE = {"alexnet", "googlenet"}  # long tests; caffenet is similar, and not long


def start_from_he(net: _caffe.Net) -> None:
    """Sets weights that keep signals alive; with published ones, deep nets need days to start."""
    random = np.random.default_rng(1)
    for blobs in net.params.values():
        for blob in blobs:
            if blob.data.ndim > 1:
                std = np.sqrt(2 / blob.data[0].size)
                blob.data[...] = std * random.standard_normal(blob.data.shape)


@pytest.mark.parametrize(
    "training",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.long] * (each.name in LARGE))
        for each in TRAININGS
    ],
)
def test_the_loss_falls(training: Training) -> None:
    random = np.random.default_rng(2)

    def place(net: _caffe.Net) -> None:
        rows = random.permutation(len(digits()[1]))[: training.batch]
        shapes = {name: net.blobs[name].data.shape for name in net.inputs}
        for name, values in training.inputs(rows, shapes).items():
            net.blobs[name].data[...] = values

    text = net_text(training.name, training.batch, {4096: 128})
    solver = _caffe.Solver(
        f"lr_policy: 'fixed' random_seed: 3 display: 0 {training.solver} net_param {{ {text} }}",
        before_forward=place,
    )
    if training.name not in ("lenet", "lrcn", "lstm3"):
        start_from_he(solver.net)
    losses = []
    for _ in range(training.iterations):
        solver.step(1)
        losses.append(solver.last_loss)
    assert np.mean(losses[-5:]) < training.share * np.mean(losses[:3]), losses
