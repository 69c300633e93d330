"""Python layers that the nets of test_caffe_programs.py use."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from hearth import caffe


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 1, 8, 8) with values in [0, 1], labels (n,), in random order."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    return (data.images[order, None] / 16).astype("f"), data.target[order]


class DigitsLayer(caffe.Layer):
    """A data layer: minibatches of digits, of the classes and the split that param_str selects."""

    def setup(self, bottom: Any, top: Any) -> None:
        if bottom or len(top) != 2:
            raise ValueError("it has no bottoms and the tops data and label")
        asked = json.loads(self.param_str)
        images, labels = digits()
        rows = np.isin(labels, asked["classes"])
        images, labels = images[rows], labels[rows]
        held_out = len(labels) // 5
        part = slice(held_out, None) if self.phase == caffe.TRAIN else slice(held_out)
        self.images, self.labels = images[part], labels[part] - min(asked["classes"])
        self.batch, self.next = asked["batch"], 0
        top[0].reshape(self.batch, *self.images.shape[1:])
        top[1].reshape(self.batch)

    def reshape(self, bottom: Any, top: Any) -> None:
        """Nothing to do: the tops keep their shapes."""

    def forward(self, bottom: Any, top: Any) -> None:
        rows = np.arange(self.next, self.next + self.batch) % len(self.labels)
        top[0].data[...] = self.images[rows]
        top[1].data[...] = self.labels[rows]
        self.next += self.batch

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        """Nothing to do: data has no gradient."""


class EuclideanLoss(caffe.Layer):
    """Loss: half the squared distance, averaged over the rows."""

    def setup(self, bottom: Any, top: Any) -> None:
        if len(bottom) != 2:
            raise ValueError("it compares two bottoms")

    def reshape(self, bottom: Any, top: Any) -> None:
        if bottom[0].count != bottom[1].count:
            raise ValueError("its bottoms differ in size")
        self.distance = np.zeros_like(bottom[0].data)
        top[0].reshape(1)

    def forward(self, bottom: Any, top: Any) -> None:
        self.distance[...] = bottom[0].data - bottom[1].data
        top[0].data[...] = np.sum(self.distance**2) / bottom[0].num / 2

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        for index, sign in enumerate((1, -1)):
            if propagate_down[index]:
                bottom[index].diff[...] = sign * top[0].diff[0] * self.distance / bottom[index].num
