"""Published networks, written from their descriptions, have the gradients of their losses."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from published_nets import FOLDER, net_text

from hearth.native import _caffe

pytestmark = pytest.mark.slow

NETS = sorted(path.stem for path in FOLDER.glob("*.prototxt"))
CHECKED_PARAMETERS = 6  # per net, from the first to the last


def fill(net: _caffe.Net, random: np.random.Generator) -> None:
    """Inputs as the net's kind of data, and weights of a size that keeps signals alive."""
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
    """The loss's slope along `direction` at `values`, by a central difference."""
    start = values.copy()
    losses = []
    for sign in (1, -1):
        values[...] = start + sign * step * direction
        losses.append(net.forward())
    values[...] = start
    return (losses[0] - losses[1]) / (2 * step)


def check_slope(net: _caffe.Net, param: _caffe.Blob, loss: float) -> None:
    """Compares the loss's slope along the parameter's gradient with the gradient's length."""
    gradient = param.diff.copy()
    length = float(np.linalg.norm(gradient))
    if length < 1e-5 * loss:  # as a bias that both sides of a Siamese net have in common
        flat = np.full_like(gradient, gradient.size**-0.5)
        assert abs(slope(net, param.data, flat, 1e-2)) < 1e-3 * loss
        return
    # The larger change of the loss is far above rounding, the smaller one crosses few kinks.
    changes = (5e-4 * loss, 5e-5 * loss)
    slopes = [slope(net, param.data, gradient / length, c / length) for c in changes]
    assert any(s == pytest.approx(length, rel=0.02) for s in slopes), f"{slopes} for {length}"


def test_all_nets_are_there() -> None:
    assert set(NETS) >= {
        "alexnet", "caffenet", "cifar10_full", "cifar10_quick", "googlenet", "lenet", "lrcn",
        "mnist_autoencoder", "mnist_siamese",
    }  # fmt: skip


# In phase TEST dropout lets everything pass, so that the loss is a function of the weights.
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
