"""Maps pixel coordinates of one top to those of another, for crops in fully convolutional nets.

A map (axis, scale, shift) maps coordinate x of one blob to scale * x + shift in another, on all
axes after `axis`; axis is None if the map applies to any axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hearth.caffe.net_spec import Function, Top, layers
from hearth.errors import HearthError, invalid

__all__ = [
    "PASS_THROUGH_LAYERS",
    "AxisMismatchException",
    "CropError",
    "UndefinedMapException",
    "compose",
    "conv_params",
    "coord_map",
    "coord_map_from_to",
    "crop",
    "crop_params",
    "inverse",
]

Map = tuple[Any, Any, Any]

# Layers whose tops have the same coordinates as their bottoms.
PASS_THROUGH_LAYERS = [
    "AbsVal", "BNLL", "BatchNorm", "Bias", "Clip", "Concat", "Dropout", "ELU", "Eltwise", "Exp",
    "LRN", "Log", "MVN", "PReLU", "Power", "ReLU", "Scale", "Sigmoid", "Softmax", "Split", "Swish",
    "TanH", "Threshold",
]  # fmt: skip

_IDENTITY: Map = (None, 1, 0)


class UndefinedMapException(HearthError):
    """A layer has no fixed map between the coordinates of its tops and its bottoms."""


class AxisMismatchException(HearthError):
    """Two maps apply to different axes."""


class CropError(HearthError, AssertionError, ValueError):
    """One top cannot be cropped to the size of another. (pycaffe raises AssertionError.)"""


def _own_params(fn: Function, kind: str) -> Mapping[str, Any]:
    """The layer's parameters, passed as keywords or as `convolution_param=dict(...)`."""
    return {**fn.params.get(f"{kind}_param", {}), **fn.params}


def _sizes(params: Mapping[str, Any], name: str, default: int) -> np.ndarray:
    """kernel_size, stride and the like: one value or one per axis, or kernel_h and kernel_w."""
    base = name.removesuffix("_size")
    if f"{base}_h" in params or f"{base}_w" in params:
        return np.array([params.get(f"{base}_h", default), params.get(f"{base}_w", default)])
    return np.array(params.get(name, default), ndmin=1)


def conv_params(fn: Function) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """(axis, stride, size, pad) of a layer's window; the size includes dilation.

    Raises:
        UndefinedMapException: the layer is a global pooling.
    """
    params = _own_params(fn, "pooling" if fn.type_name == "Pooling" else "convolution")
    if params.get("global_pooling"):
        raise UndefinedMapException("a global pooling has no coordinate map")
    dilation = _sizes(params, "dilation", 1)
    size = dilation * (_sizes(params, "kernel_size", 1) - 1) + 1
    return params.get("axis", 1), _sizes(params, "stride", 1), size, _sizes(params, "pad", 0)


def crop_params(fn: Function) -> tuple[int, np.ndarray]:
    """(axis, offsets) of a Crop layer."""
    params = _own_params(fn, "crop")
    return params.get("axis", 2), np.array(params.get("offset", 0), ndmin=1)


def coord_map(fn: Function) -> Map:
    """The map from the coordinates of the layer's bottom to the coordinates of its top.

    Raises:
        UndefinedMapException: the layer has no fixed map from its bottoms to its tops.
    """
    if fn.type_name in ("Convolution", "Pooling", "Im2col"):
        axis, stride, size, pad = conv_params(fn)
        return axis, 1 / stride, (pad - (size - 1) / 2) / stride
    if fn.type_name == "Deconvolution":
        axis, stride, size, pad = conv_params(fn)
        return axis, stride, (size - 1) / 2 - pad
    if fn.type_name in PASS_THROUGH_LAYERS:
        return _IDENTITY
    if fn.type_name == "Crop":
        axis, offset = crop_params(fn)
        return axis - 1, 1, -offset  # a map applies to the axes after `axis`
    raise UndefinedMapException(f"cannot map the coordinates of {fn.type_name}'s top to its bottom")


def compose(base_map: Map, next_map: Map) -> Map:
    """The map that applies `next_map` and then `base_map`.

    Raises:
        AxisMismatchException: the maps apply to different axes.
    """
    (base_axis, base_scale, base_shift), (axis, scale, shift) = base_map, next_map
    if None not in (base_axis, axis) and base_axis != axis:
        raise AxisMismatchException(
            f"maps along axis {axis} and along axis {base_axis} cannot be composed"
        )
    joined = axis if base_axis is None else base_axis
    return joined, base_scale * scale, base_scale * shift + base_shift


def inverse(coord_map: Map) -> Map:
    """The inverse map."""
    axis, scale, shift = coord_map
    return axis, 1 / scale, -shift / scale


def _ancestors(top: Top) -> dict[Top, Map]:
    """The tops that `top` depends on, each with the map from its coordinates to `top`'s."""
    maps = {top: _IDENTITY}
    waiting = [top]
    while waiting:
        current = waiting.pop()
        try:
            step = coord_map(current.fn)
        except UndefinedMapException:
            continue  # not an error yet: another path may connect the two tops
        # Follow only a Crop layer's first bottom; the second one determines the size, not
        # coordinates.
        bottoms = current.fn.inputs[:1] if current.fn.type_name == "Crop" else current.fn.inputs
        for bottom in bottoms:
            if bottom not in maps:
                maps[bottom] = compose(maps[current], step)
                waiting.append(bottom)
    return maps


def coord_map_from_to(top_from: Top, top_to: Top) -> Map:
    """The map from the coordinates of one top to those of another, if both depend on a common top.

    Raises:
        RuntimeError: the tops have no common origin that is connected to both by layers with
            coordinate maps.
    """
    from_maps, to_maps = _ancestors(top_from), _ancestors(top_to)
    for origin, to_map in to_maps.items():
        if origin in from_maps:
            return compose(to_map, inverse(from_maps[origin]))
    raise invalid("there is no map between the two tops: they have no common origin")


def crop(top_from: Top, top_to: Top) -> Top:
    """A Crop layer that cuts `top_from` to the size of `top_to`, aligned by coordinates.

    Raises:
        CropError: the tops have different scales, or the offset is negative or not an integer.
        RuntimeError: the tops have no common origin.
    """
    axis, scale, shift = coord_map_from_to(top_from, top_to)
    if not np.allclose(scale, 1):
        raise CropError(f"cannot crop: the tops differ in scale by {scale}")
    offsets = np.atleast_1d(np.round(-np.asarray(shift)))
    if not np.allclose(offsets, -np.asarray(shift)) or (offsets < 0).any():
        raise CropError(f"cannot crop at the offset {-shift}: it must be an integer of at least 0")
    param = {"axis": (1 if axis is None else axis) + 1, "offset": [int(value) for value in offsets]}
    return layers.Crop(top_from, top_to, crop_param=param)
