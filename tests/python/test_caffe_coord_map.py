"""caffe.coord_map: crops of fully convolutional nets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hearth import caffe
from hearth.caffe import layers as L
from hearth.caffe.coord_map import UndefinedMapException, coord_map, coord_map_from_to, crop


def data() -> object:
    return L.Input(shape=dict(dim=[1, 1, 40, 40]))


def test_the_crop_of_fcn_32s_is_at_19() -> None:
    image = net = data()
    for stage in range(5):
        pad = 100 if stage == 0 else 1
        net = L.ReLU(L.Convolution(net, kernel_size=3, pad=pad, num_output=1), in_place=True)
        net = L.Convolution(net, kernel_size=3, pad=1, num_output=1)
        net = L.Pooling(net, kernel_size=2, stride=2)
    net = L.Dropout(L.Convolution(net, kernel_size=7, num_output=1))
    up = L.Deconvolution(net, convolution_param=dict(kernel_size=64, stride=32, num_output=1))
    param = crop(up, image).fn.params["crop_param"]
    assert param == {"axis": 2, "offset": [19]}


def test_a_map_goes_from_bottom_to_top() -> None:
    axis, scale, shift = coord_map(L.Pooling(data(), kernel_size=2, stride=2).fn)
    assert (axis, float(scale), float(shift)) == (1, 0.5, -0.25)
    axis, scale, shift = coord_map(L.Deconvolution(data(), kernel_size=4, stride=2, pad=1).fn)
    assert (float(scale), float(shift)) == (2, 0.5)


def test_the_crop_lies_where_the_pixels_are(tmp_path: Path) -> None:
    """A bright pixel that goes through pad, pooling and deconvolution comes back to its place."""
    n = caffe.NetSpec()
    n.data = data()
    n.conv = L.Convolution(n.data, kernel_size=3, pad=9, num_output=1, bias_term=False,
                           weight_filler=dict(type="constant", value=1))  # fmt: skip
    n.pool = L.Pooling(n.conv, kernel_size=2, stride=2, pool=caffe.params.Pooling.AVE)
    n.up = L.Deconvolution(n.pool, convolution_param=dict(
        kernel_size=4, stride=2, num_output=1, bias_term=False,
        weight_filler=dict(type="bilinear")))  # fmt: skip
    n.crop = crop(n.up, n.data)
    (tmp_path / "net.prototxt").write_text(str(n.to_proto()))
    net = caffe.Net(str(tmp_path / "net.prototxt"), caffe.TEST)
    image = np.zeros((1, 1, 40, 40), "f")
    image[0, 0, 20:24, 12:16] = 1
    out = net.forward(data=image)["crop"][0, 0]
    assert out.shape == (40, 40)
    rows, columns = np.mgrid[:40, :40]
    place = [(out * axis).sum() / out.sum() for axis in (rows, columns)]
    np.testing.assert_allclose(place, [21.5, 13.5], atol=1e-4)


def test_no_map_no_crop() -> None:
    n = data()
    with pytest.raises(RuntimeError, match="no common origin"):
        coord_map_from_to(L.ReLU(n), L.ReLU(data()))
    with pytest.raises(RuntimeError, match="no common origin"):
        crop(L.ReLU(L.InnerProduct(n, num_output=1)), n)
    with pytest.raises(UndefinedMapException, match="InnerProduct"):
        coord_map(L.InnerProduct(n, num_output=1).fn)
    with pytest.raises(ValueError, match="scale"):
        crop(L.Pooling(n, kernel_size=2, stride=2), n)
    with pytest.raises(ValueError, match="offset"):
        crop(L.Convolution(n, kernel_size=3), n)  # smaller than what it is cropped to
