"""Published networks, rebuilt from their descriptions: their gradients match their losses."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from published_nets import FOLDER, net_text

from hearth.native import _caffe

pytestmark = pytest.mark.slow

NETS = sorted(path.stem for path in FOLDER.glob("*.prototxt"))
CHECKED_PARAMETERS = 6  # per net, evenly chosen from first to last


def fill(net: _caffe.Net, random: np.random.Generator) -> None:
    """Fills inputs with suitable data, and sets weights of a size that keeps signals alive."""
    for name in net.inputs:
        blob = net.blobs[name].data
        if name in ("label", "input_sentence", "target_sentence"):
            blob[...] = random.integers(0, 10, blob.shape)
        elif name == "sim":
            blob[...] = np.arange(blob.size) % 2
        elif name.startswith("cont"):
            blob[...] = np.arange(blob.shape[0])[:, None] > 0
        else:
            blob[...] = random.uniform(0, 1, blob.shape)
    for blobs in net.params.values():
        for blob in blobs:
            fan_in = blob.data[0].size if blob.data.ndim > 1 else 1e4
            blob.data[...] = random.standard_normal(blob.data.shape) * np.sqrt(2 / fan_in)


def slope(net: _caffe.Net, values: np.ndarray, direction: np.ndarray, step: float) -> float:
    """The slope of the loss along `direction` at `values`, by a central difference."""
    start = values.copy()
    losses = []
    for sign in (1, -1):
        values[...] = start + sign * step * direction
        losses.append(net.forward())
    values[...] = start
    return (losses[0] - losses[1]) / (2 * step)


def check_slope(net: _caffe.Net, param: _caffe.Blob, loss: float) -> None:
    """Checks that the loss's slope along the parameter's gradient is the gradient's length."""
    gradient = param.diff.copy()
    length = float(np.linalg.norm(gradient))
    if length < 1e-5 * loss:  # such as a bias that both sides of a Siamese net share
        flat = np.full_like(gradient, gradient.size**-0.5)
        assert abs(slope(net, param.data, flat, 1e-2)) < 1e-3 * loss
        return
    # The larger step is far above rounding errors; the smaller one crosses fewer kinks.
    changes = (5e-4 * loss, 5e-5 * loss)
    slopes = [slope(net, param.data, gradient / length, c / length) for c in changes]
    assert any(s == pytest.approx(length, rel=0.02) for s in slopes), f"{slopes} for {length}"


def test_all_nets_are_there() -> None:
    assert set(NETS) >= {
        "alexnet", "caffenet", "cifar10_full", "cifar10_quick", "googlenet", "lenet", "lrcn",
        "mnist_autoencoder", "mnist_siamese",
    }  # fmt: skip


# Phase TEST disables dropout, so that the loss depends only on the weights.
@pytest.mark.parametrize("name", NETS)
def test_the_gradient_is_the_losses_slope(name: str) -> None:
    net = _caffe.Net(net_text(name, 2, {4096: 64, 1000: 20, 500: 20}), "TEST")
    fill(net, np.random.default_rng(zlib.crc32(name.encode())))
    loss = net.forward()
    assert np.isfinite(loss) and loss > 0
    net.clear_param_diffs()
    net.backward()
    params = [blob for blobs in net.params.values() for blob in blobs]
    indices = np.unique(np.linspace(0, len(params) - 1, CHECKED_PARAMETERS).astype(int))
    for index in indices:
        check_slope(net, params[index], loss)
