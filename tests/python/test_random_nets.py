"""Nets of random layers compute the same as PyTorch in float64, including gradients.

The layers' own tests compare each with its formula; here they occur in many orders and layouts.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from random_nets import RandomNet  # noqa: E402

from hearth import caffe  # noqa: E402

pytestmark = pytest.mark.slow

# To run more: HEARTH_RANDOM_NETS=5000 pytest tests/python/test_random_nets.py
NETS = int(os.environ.get("HEARTH_RANDOM_NETS", "150"))


def assert_close(ours: np.ndarray, theirs: torch.Tensor, what: str) -> None:
    theirs = theirs.detach().numpy()
    scale = max(1.0, float(np.abs(theirs).max()))
    assert ours.shape == theirs.shape, what
    error = float(np.abs(ours - theirs).max())
    assert error <= 2e-4 * scale, f"{what}: off by {error} where the largest is {scale}"


@pytest.mark.parametrize("first", range(0, NETS, 50))
def test_values_and_gradients_are_those_of_pytorch(tmp_path: Path, first: int) -> None:
    for seed in range(first, min(first + 50, NETS)):
        check(RandomNet(seed), seed, tmp_path / "net.prototxt")


def check(random_net: RandomNet, seed: int, file: Path) -> None:
    file.write_text(random_net.text)
    caffe.set_random_seed(seed + 1)
    net = caffe.Net(str(file), caffe.TRAIN)
    numbers = np.random.default_rng(seed)
    x = numbers.standard_normal(random_net.shape).astype("f")
    net.blobs["x"].data[...] = x
    parameters = {
        name: [torch.tensor(blob.data.astype("d"), requires_grad=True) for blob in blobs]
        for name, blobs in net.params.items()
    }
    inputs = torch.tensor(x.astype("d"), requires_grad=True)
    net.forward()
    expected = random_net.forward(inputs, parameters)[random_net.out]
    where = f"net {seed}:\n{random_net.text}\n"
    assert_close(net.blobs[random_net.out].data, expected, where)

    weights = numbers.standard_normal(expected.shape)
    net.blobs[random_net.out].diff[...] = weights
    net.backward()
    (expected * torch.tensor(weights)).sum().backward()
    assert_close(net.blobs["x"].diff, inputs.grad, where + "gradient of x")
    for name, blobs in net.params.items():
        for i, blob in enumerate(blobs):
            gradient = parameters[name][i].grad
            if gradient is not None:  # statistics have no gradient
                assert_close(blob.diff, gradient, where + f"gradient of {name}[{i}]")
