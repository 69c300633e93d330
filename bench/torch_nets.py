"""The networks of examples/nets/ as PyTorch modules: the peers of bench/engine.py."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def _conv(inputs: int, outputs: int, kernel: int, **more: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, **more), nn.ReLU(inplace=True))


def _pool(kind: Callable[..., nn.Module], kernel: int = 3, stride: int = 2) -> nn.Module:
    return kind(kernel, stride, ceil_mode=True)


class Classifier(nn.Module):
    """Features, then fully connected layers; the loss is softmax cross entropy."""

    def __init__(self, features: nn.Module, *head: nn.Module) -> None:
        super().__init__()
        self.features, self.head = features, nn.Sequential(nn.Flatten(), *head)

    def loss(self, data: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(self.head(self.features(data)), label)


def lenet() -> nn.Module:
    features = nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2)
    )
    return Classifier(features, nn.Linear(800, 500), nn.ReLU(inplace=True), nn.Linear(500, 10))


def cifar10_quick() -> nn.Module:
    features = nn.Sequential(
        nn.Conv2d(3, 32, 5, padding=2), _pool(nn.MaxPool2d), nn.ReLU(inplace=True),
        _conv(32, 32, 5, padding=2), _pool(nn.AvgPool2d),
        _conv(32, 64, 5, padding=2), _pool(nn.AvgPool2d),
    )  # fmt: skip
    return Classifier(features, nn.Linear(1024, 64), nn.Linear(64, 10))


def _alexnet(norm_first: bool) -> nn.Module:
    def between() -> list[nn.Module]:
        pair = [nn.LocalResponseNorm(5, 1e-4, 0.75, 1.0), _pool(nn.MaxPool2d)]
        return pair if norm_first else pair[::-1]

    features = nn.Sequential(
        _conv(3, 96, 11, stride=4), *between(),
        _conv(96, 256, 5, padding=2, groups=2), *between(),
        _conv(256, 384, 3, padding=1), _conv(384, 384, 3, padding=1, groups=2),
        _conv(384, 256, 3, padding=1, groups=2), _pool(nn.MaxPool2d),
    )  # fmt: skip
    head: list[nn.Module] = []
    for inputs in (9216, 4096):
        head += [nn.Linear(inputs, 4096), nn.ReLU(inplace=True), nn.Dropout(0.5)]
    return Classifier(features, *head, nn.Linear(4096, 1000))


def alexnet() -> nn.Module:
    return _alexnet(norm_first=True)


def caffenet() -> nn.Module:
    return _alexnet(norm_first=False)


class Inception(nn.Module):
    def __init__(self, inputs: int, c1: int, c3r: int, c3: int, c5r: int, c5: int, proj: int):
        super().__init__()
        self.outputs = c1 + c3 + c5 + proj
        self.branches = nn.ModuleList(
            [
                _conv(inputs, c1, 1),
                nn.Sequential(_conv(inputs, c3r, 1), _conv(c3r, c3, 3, padding=1)),
                nn.Sequential(_conv(inputs, c5r, 1), _conv(c5r, c5, 5, padding=2)),
                nn.Sequential(nn.MaxPool2d(3, 1, 1), _conv(inputs, proj, 1)),
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


class GoogLeNet(nn.Module):
    """With both auxiliary classifiers, each with loss weight 0.3."""

    def __init__(self) -> None:
        super().__init__()
        norm = lambda: nn.LocalResponseNorm(5, 1e-4, 0.75, 1.0)  # noqa: E731
        self.first = nn.Sequential(
            _conv(3, 64, 7, stride=2, padding=3), _pool(nn.MaxPool2d), norm(),
            _conv(64, 64, 1), _conv(64, 192, 3, padding=1), norm(), _pool(nn.MaxPool2d),
            Inception(192, 64, 96, 128, 16, 32, 32), Inception(256, 128, 128, 192, 32, 96, 64),
            _pool(nn.MaxPool2d), Inception(480, 192, 96, 208, 16, 48, 64),
        )  # fmt: skip
        self.second = nn.Sequential(
            Inception(512, 160, 112, 224, 24, 64, 64), Inception(512, 128, 128, 256, 24, 64, 64),
            Inception(512, 112, 144, 288, 32, 64, 64),
        )  # fmt: skip
        self.third = nn.Sequential(
            Inception(528, 256, 160, 320, 32, 128, 128), _pool(nn.MaxPool2d),
            Inception(832, 256, 160, 320, 32, 128, 128),
            Inception(832, 384, 192, 384, 48, 128, 128),
            nn.AvgPool2d(7, 1), nn.Flatten(), nn.Dropout(0.4), nn.Linear(1024, 1000),
        )  # fmt: skip
        self.aux1, self.aux2 = self._aux(512), self._aux(528)

    @staticmethod
    def _aux(inputs: int) -> nn.Module:
        return nn.Sequential(
            nn.AvgPool2d(5, 3, ceil_mode=True), _conv(inputs, 128, 1), nn.Flatten(),
            nn.Linear(2048, 1024), nn.ReLU(inplace=True), nn.Dropout(0.7), nn.Linear(1024, 1000),
        )  # fmt: skip

    def loss(self, data: Tensor, label: Tensor) -> Tensor:
        a = self.first(data)
        b = self.second(a)
        outputs = [(1.0, self.third(b)), (0.3, self.aux1(a)), (0.3, self.aux2(b))]
        return sum(weight * F.cross_entropy(y, label) for weight, y in outputs)


def googlenet() -> nn.Module:
    return GoogLeNet()


class Lstm3(nn.Module):
    """Three layers of 128 units.

    As in Caffe, the loss is half the mean square error per sequence step.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(128, 128, num_layers=3)

    def loss(self, data: Tensor, target: Tensor) -> Tensor:
        return (self.lstm(data)[0] - target).square().sum() / (2 * data.shape[0])


def lstm3() -> nn.Module:
    return Lstm3()
