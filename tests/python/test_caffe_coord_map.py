"""caffe.coord_map: crops of fully convolutional nets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hearth import caffe
from hearth.caffe import coord_map as coord_map_module
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
    assert (axis, scale.tolist(), shift.tolist()) == (1, [0.5], [-0.25])
    axis, scale, shift = coord_map(L.Deconvolution(data(), kernel_size=4, stride=2, pad=1).fn)
    assert (scale.tolist(), shift.tolist()) == ([2], [0.5])
    assert coord_map(L.ReLU(data()).fn) == (None, 1, 0)
    axis, scale, shift = coord_map(L.Crop(data(), data(), axis=2, offset=[3, 4]).fn)
    assert (axis, scale, shift.tolist()) == (1, 1, [-3, -4])


def test_the_crop_offset_follows_the_coordinate_map(tmp_path: Path) -> None:
    """Pad, pooling and deconvolution, and then Crop, leave a bright pixel where it was."""
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


def between(padded: int = 0, cut: int = 0, pool: int = 2, up: int = 2) -> tuple[object, object]:
    """The output and the input of a net of convolution, pooling and deconvolution."""
    image = data()
    net = L.Convolution(image, kernel_size=3, num_output=1, pad=padded)
    net = L.Pooling(net, kernel_size=pool, stride=pool)
    return L.Deconvolution(net, kernel_size=2 * up, stride=up, num_output=1, pad=cut), image


def test_padding_moves_and_cutting_moves_back() -> None:
    assert [x.tolist() for x in coord_map_from_to(*between())[1:]] == [[1], [0]]
    assert coord_map_from_to(*between(padded=3))[2].tolist() == [-3]
    assert coord_map_from_to(*between(cut=3))[2].tolist() == [3]
    assert coord_map_from_to(*between(padded=3, cut=3))[2].tolist() == [0]
    assert coord_map_from_to(*between(pool=4, up=4))[2].tolist() == [-1]


def test_a_crop_of_a_crop_adds_the_first_offset() -> None:
    up, image = between(padded=9)
    once = L.Crop(up, image, axis=2, offset=4)
    assert crop(once, image).fn.params["crop_param"] == {"axis": 2, "offset": [5]}


def test_each_axis_has_a_separate_map() -> None:
    image = L.Input(shape=dict(dim=[1, 1, 40, 40, 40]))
    net = L.Convolution(image, kernel_size=3, num_output=1, stride=[1] * 3, pad=[1, 2, 3])
    net = L.Pooling(net, kernel_size=2, stride=2)
    net = L.Deconvolution(net, kernel_size=4, stride=2, num_output=1)
    axis, scale, shift = coord_map_from_to(net, image)
    assert (axis, scale.tolist(), shift.tolist()) == (1, [1, 1, 1], [-1, -2, -3])
    assert crop(net, image).fn.params["crop_param"]["offset"] == [1, 2, 3]


def test_every_bottom_of_a_layer_is_mapped_alike() -> None:
    first, second = data(), data()
    tops = L.Convolution(first, second, kernel_size=5, stride=2, num_output=1, ntop=2)
    for top, bottom in zip(tops, (first, second), strict=True):
        assert [x.tolist() for x in coord_map_from_to(top, bottom)[1:]] == [[2], [2]]


def test_parameters_of_layers_become_parts_of_maps() -> None:
    layer = L.Convolution(data(), kernel_size=[3, 5], dilation=2, stride=2, pad=1).fn
    axis, stride, size, pad = coord_map_module.conv_params(layer)
    assert (axis, stride.tolist(), size.tolist(), pad.tolist()) == (1, [2], [5, 9], [1])
    inside = L.Pooling(data(), pooling_param=dict(kernel_h=3, kernel_w=2)).fn
    assert coord_map_module.conv_params(inside)[2].tolist() == [3, 2]
    axis, offset = coord_map_module.crop_params(L.Crop(data(), data()).fn)
    assert (axis, offset.tolist()) == (2, [0])
    assert coord_map_module.compose((None, 2, 1), (1, 3, 4)) == (1, 6, 9)
    assert coord_map_module.compose((1, 2, 1), (None, 3, 4)) == (1, 6, 9)
    assert coord_map_module.inverse((1, 2, 1)) == (1, 0.5, -0.5)
    with pytest.raises(coord_map_module.AxisMismatchException, match="axis 2"):
        coord_map_module.compose((1, 2, 1), (2, 3, 4))


def test_a_crop_without_a_map_is_refused() -> None:
    n = data()
    with pytest.raises(RuntimeError, match="no common origin"):
        coord_map_from_to(L.ReLU(n), L.ReLU(data()))
    with pytest.raises(RuntimeError, match="no common origin"):
        crop(L.ReLU(L.InnerProduct(n, num_output=1)), n)
    with pytest.raises(UndefinedMapException, match="InnerProduct"):
        coord_map(L.InnerProduct(n, num_output=1).fn)
    for error in (AssertionError, ValueError):  # pycaffe raises the first, Hearth both
        with pytest.raises(error, match="scale"):
            crop(L.Pooling(n, kernel_size=2, stride=2), n)
        with pytest.raises(error, match="offset"):
            crop(L.Convolution(n, kernel_size=3), n)  # smaller than the reference
        with pytest.raises(error, match=r"offset \[0.5\]"):
            crop(L.Convolution(n, kernel_size=2, pad=1), n)
