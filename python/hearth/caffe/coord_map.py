"""Where the pixels of one top lie in another: for crops in fully convolutional nets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hearth.caffe.net_spec import Function, Top, layers

__all__ = ["UndefinedMapException", "coord_map", "coord_map_from_to", "crop"]

_WINDOWS = ("Convolution", "Pooling", "Im2col", "Deconvolution")
_SAME_PLACE = (
    "PReLU", "ReLU", "ELU", "Swish", "Sigmoid", "TanH", "AbsVal", "BNLL", "Power", "Exp", "Log",
    "Clip", "Threshold", "Dropout", "LRN", "BatchNorm", "Scale", "Bias", "MVN", "Eltwise",
    "Softmax", "Concat", "Split",
)  # fmt: skip


class UndefinedMapException(Exception):
    """A layer whose tops have no fixed place in its bottoms."""


@dataclass(frozen=True)
class _Map:
    """Coordinates `x` of a top are `scale * x + shift` in a bottom, from spatial axis `axis` on."""

    axis: int | None
    scale: np.ndarray
    shift: np.ndarray

    def then(self, other: _Map) -> _Map:
        """This map, then `other`."""
        if self.axis is not None and other.axis is not None and self.axis != other.axis:
            raise UndefinedMapException(
                f"maps along axis {self.axis} and axis {other.axis} cannot be joined"
            )
        axis = self.axis if self.axis is not None else other.axis
        return _Map(axis, self.scale * other.scale, other.scale * self.shift + other.shift)

    def inverse(self) -> _Map:
        return _Map(self.axis, 1 / self.scale, -self.shift / self.scale)


_IDENTITY = _Map(None, np.array(1.0), np.array(0.0))


def _own_params(fn: Function) -> Mapping[str, Any]:
    """The layer's parameters, also where they are given as `convolution_param=dict(...)`."""
    kind = {"Deconvolution": "convolution", "Im2col": "convolution"}.get(
        fn.type_name, fn.type_name.lower()
    )
    return {**fn.params.get(f"{kind}_param", {}), **fn.params}


def _sizes(params: Mapping[str, Any], name: str, default: int) -> np.ndarray:
    """kernel_size, stride, ... as one value or one per axis; also as kernel_h and kernel_w."""
    base = name.removesuffix("_size")
    if f"{base}_h" in params or f"{base}_w" in params:
        return np.array([params.get(f"{base}_h", default), params.get(f"{base}_w", default)])
    return np.array(params.get(name, default))


def _window_map(fn: Function) -> _Map:
    params = _own_params(fn)
    if params.get("global_pooling"):
        raise UndefinedMapException("a global pooling has no place")
    dilation = _sizes(params, "dilation", 1)
    extent = dilation * (_sizes(params, "kernel_size", 1) - 1) + 1
    stride, pad = _sizes(params, "stride", 1), _sizes(params, "pad", 0)
    offset = (extent - 1) / 2 - pad
    forward = _Map(params.get("axis", 1), stride * 1.0, offset * 1.0)
    # A deconvolution is the convolution with top and bottom exchanged.
    return forward.inverse() if fn.type_name == "Deconvolution" else forward


def coord_map(fn: Function) -> tuple[int | None, np.ndarray, np.ndarray]:
    """(axis, scale, shift): coordinate x of the layer's bottom is at scale * x + shift in its top.

    Raises:
        UndefinedMapException: the layer keeps no places.
    """
    place = _layer_map(fn).inverse()
    return place.axis, place.scale, place.shift


def _layer_map(fn: Function) -> _Map:
    if fn.type_name in _WINDOWS:
        return _window_map(fn)
    if fn.type_name in _SAME_PLACE:
        return _IDENTITY
    if fn.type_name == "Crop":
        params = _own_params(fn)
        offset = np.array(params.get("offset", 0)) * 1.0
        return _Map(params.get("axis", 2) - 1, np.array(1.0), offset)
    raise UndefinedMapException(f"tops of {fn.type_name} have no fixed place in its bottoms")


def _ancestors(top: Top) -> dict[Top, _Map]:
    """Every top that `top` is made from, with the place of `top`'s coordinates in it."""
    maps = {top: _IDENTITY}
    waiting = [top]
    while waiting:
        current = waiting.pop()
        try:
            step = _layer_map(current.fn)
        except UndefinedMapException:
            continue  # only an error when no other way leads to the other top
        # A crop takes its place from its first bottom, its size from the second.
        bottoms = current.fn.inputs[:1] if current.fn.type_name == "Crop" else current.fn.inputs
        for bottom in bottoms:
            if bottom not in maps:
                maps[bottom] = maps[current].then(step)
                waiting.append(bottom)
    return maps


def coord_map_from_to(top_from: Top, top_to: Top) -> tuple[int | None, np.ndarray, np.ndarray]:
    """(axis, scale, shift) from coordinates of one top to those of another with a common origin.

    Raises:
        RuntimeError: no top is an origin of both by layers that keep places.
    """
    from_maps, to_maps = _ancestors(top_from), _ancestors(top_to)
    for origin, to_map in to_maps.items():
        if origin in from_maps:
            place = from_maps[origin].then(to_map.inverse())
            return place.axis, place.scale, place.shift
    raise RuntimeError("there is no map between the two tops: they have no common origin")


def crop(top_from: Top, top_to: Top) -> Top:
    """A Crop layer that cuts `top_from` to the size of `top_to`, where its pixels lie in it.

    Raises:
        ValueError: the tops have different scales, or the offset is negative or not whole.
    """
    # In the coordinates of `top_from`: where does `top_to` begin?
    axis, scale, shift = coord_map_from_to(top_to, top_from)
    if not np.allclose(scale, 1):
        raise ValueError(f"cannot crop: the tops differ in scale by {scale}")
    offsets = np.atleast_1d(np.round(shift))
    if not np.allclose(offsets, shift) or (offsets < 0).any():
        raise ValueError(f"cannot crop at the offset {shift}: it must be whole and not negative")
    param = {"axis": (1 if axis is None else axis) + 1, "offset": [int(value) for value in offsets]}
    return layers.Crop(top_from, top_to, crop_param=param)
