"""Converts images and arrays for the inputs and outputs of a net."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hearth.caffe import proto
from hearth.caffe.resize import resize_image
from hearth.errors import invalid
from hearth.native import _caffe

__all__ = [
    "Transformer",
    "array_to_blobproto",
    "array_to_datum",
    "arraylist_to_blobprotovector_str",
    "blobproto_to_array",
    "blobprotovector_str_to_arraylist",
    "datum_to_array",
    "load_image",
    "oversample",
    "resize_image",
]

# Weights of blue, green and red for conversion to gray, the same as scikit-image's and pycaffe's.
_LUMA = np.array([[0.0721], [0.7154], [0.2125]])


def load_image(filename: str | os.PathLike[str], color: bool = True) -> np.ndarray:
    """Reads a JPEG or PNG file.

    Returns:
        float32 values in [0, 1]: (height, width, 3) in RGB order, or (height, width, 1) gray.

    Raises:
        FileNotFoundError: the file does not exist.
        HearthError: the file is damaged.
    """
    data = Path(filename).read_bytes()
    if color:
        return _caffe.decode_image(data, "color")[:, :, ::-1].astype(np.float32) / 255
    image = _caffe.decode_image(data, "unchanged")
    if image.shape[2] > 1:  # channels: blue, green, red, and possibly alpha
        return (image[:, :, :3] @ _LUMA / 255).astype(np.float32)
    return image.astype(np.float32) / 255


def oversample(images: Sequence[np.ndarray], crop_dims: Sequence[int]) -> np.ndarray:
    """Ten crops of each image: four corners and the center, then their mirror images.

    Args:
        images: images of one size, each (height, width, channels).
        crop_dims: the (height, width) of the crops.

    Returns:
        float32 (10 * len(images), height, width, channels).
    """
    crop_height, crop_width = (int(size) for size in crop_dims)
    height, width = np.shape(images[0])[:2]
    bottom, right = height - crop_height, width - crop_width
    corners = [(y, x) for y in (0, bottom) for x in (0, right)]
    corners.append((bottom // 2, right // 2))
    crops = []
    for image in images:
        upright = [image[y : y + crop_height, x : x + crop_width] for y, x in corners]
        crops += upright + [crop[:, ::-1] for crop in upright]
    return np.stack(crops).astype(np.float32)


class Transformer:
    """Converts images to arrays for a net's inputs, and back.

    `preprocess` resizes, then applies in this order each step that was set: transpose, channel
    swap, raw scale, mean subtraction, input scale.
    """

    def __init__(self, inputs: Mapping[str, Sequence[int]]) -> None:
        """`inputs`: the shape (items, channels, height, width) of each input blob, by name."""
        self.inputs = {name: tuple(shape) for name, shape in inputs.items()}
        self.transpose: dict[str, tuple[int, ...]] = {}
        self.channel_swap: dict[str, tuple[int, ...]] = {}
        self.raw_scale: dict[str, float] = {}
        self.mean: dict[str, np.ndarray] = {}
        self.input_scale: dict[str, float] = {}

    def _check(self, in_: str) -> None:
        if in_ not in self.inputs:
            raise invalid(
                f"{in_!r} is not an input of this Transformer; its inputs are {list(self.inputs)}"
            )

    def preprocess(self, in_: str, data: np.ndarray) -> np.ndarray:
        """Converts an image (height, width, channels) to a float32 array for input `in_`.

        The result has no item axis.
        """
        self._check(in_)
        array = np.asarray(data, np.float32)
        size = self.inputs[in_][2:]
        if array.shape[:2] != size:
            array = resize_image(array, size)
        if in_ in self.transpose:
            array = array.transpose(self.transpose[in_])
        if in_ in self.channel_swap:
            array = array[list(self.channel_swap[in_])]
        array = array * np.float32(self.raw_scale.get(in_, 1))
        if in_ in self.mean:
            array = array - self.mean[in_]
        return array * np.float32(self.input_scale.get(in_, 1))

    def deprocess(self, in_: str, data: np.ndarray) -> np.ndarray:
        """Inverts `preprocess` except for resizing; returns float32."""
        self._check(in_)
        array = np.array(data, np.float32).reshape(np.shape(data)[-3:])
        array /= self.input_scale.get(in_, 1)
        if in_ in self.mean:
            array += self.mean[in_]
        array /= self.raw_scale.get(in_, 1)
        if in_ in self.channel_swap:
            array = array[np.argsort(self.channel_swap[in_])]
        if in_ in self.transpose:
            array = array.transpose(np.argsort(self.transpose[in_]))
        return array

    def set_transpose(self, in_: str, order: Sequence[int]) -> None:
        """Sets the axis order: (2, 0, 1) converts (height, width, channels) to the nets' order."""
        self._check(in_)
        if len(order) != len(self.inputs[in_]) - 1:
            raise invalid(f"{in_}: the transpose {tuple(order)} is not an order of 3 axes")
        self.transpose[in_] = tuple(order)

    def set_channel_swap(self, in_: str, order: Sequence[int]) -> None:
        """Sets the channel order: (2, 1, 0) converts RGB to BGR."""
        self._check(in_)
        if len(order) != self.inputs[in_][1]:
            raise invalid(
                f"{in_} has {self.inputs[in_][1]} channels, but their order is {tuple(order)}"
            )
        self.channel_swap[in_] = tuple(order)

    def set_raw_scale(self, in_: str, scale: float) -> None:
        """Sets a factor applied before the mean is subtracted, such as 255 for images in [0, 1]."""
        self._check(in_)
        self.raw_scale[in_] = scale

    def set_input_scale(self, in_: str, scale: float) -> None:
        """Sets a factor applied after the mean is subtracted."""
        self._check(in_)
        self.input_scale[in_] = scale

    def set_mean(self, in_: str, mean: np.ndarray) -> None:
        """Sets the mean to subtract: one value per channel (channels,), or an image (channels,
        height, width).

        A mean image of another size is resized; one with a single channel applies to all channels.
        (height, width) is accepted if it is the input's size and the input has one channel.

        Raises:
            ValueError: the mean has another shape.
        """
        self._check(in_)
        array = np.asarray(mean, np.float32)
        shape = self.inputs[in_][1:]
        fits = {
            1: array.shape == shape[:1],
            2: (1, *array.shape) == shape,
            3: array.shape[:1] in (shape[:1], (1,)),
        }
        if not fits.get(array.ndim, False):
            raise invalid(f"{in_} has the shape {shape}, but its mean has {array.shape}")
        if array.ndim == 1:
            array = array[:, None, None]
        elif array.ndim == 3 and array.shape[1:] != shape[1:]:
            array = resize_image(array.transpose(1, 2, 0), shape[1:]).transpose(2, 0, 1)
        self.mean[in_] = array.reshape(-1, *array.shape[-2:])


# ---- messages: creating one requires the protobuf package ----


def __getattr__(name: str) -> Any:
    # Imports caffe.io.caffe_pb2 on first access, because that module needs protobuf.
    if name == "caffe_pb2":
        return proto.caffe_pb2
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def blobproto_to_array(blob: Any, return_diff: bool = False) -> np.ndarray:
    """A BlobProto's values, or with `return_diff` its gradient, as float32 in its shape.

    Raises:
        ValueError: the number of values does not match the shape; an empty shape means one value.
    """
    values = np.array(blob.diff if return_diff else blob.data, np.float32)
    if any(blob.HasField(name) for name in ("num", "channels", "height", "width")):
        shape = (blob.num, blob.channels, blob.height, blob.width)
    else:
        shape = tuple(blob.shape.dim)
    if values.size != math.prod(shape):
        raise invalid(f"a BlobProto of the shape {shape} cannot hold {values.size} values")
    return values.reshape(shape)


def array_to_blobproto(arr: np.ndarray, diff: np.ndarray | None = None) -> Any:
    """A BlobProto with the array's shape and values, and a gradient if given."""
    blob = proto.caffe_pb2.BlobProto()
    blob.shape.dim.extend(np.shape(arr))
    blob.data.extend(np.asarray(arr, np.float32).ravel().tolist())
    if diff is not None:
        blob.diff.extend(np.asarray(diff, np.float32).ravel().tolist())
    return blob


def arraylist_to_blobprotovector_str(arraylist: Sequence[np.ndarray]) -> bytes:
    """Serializes several arrays as a BlobProtoVector."""
    vector = proto.caffe_pb2.BlobProtoVector()
    vector.blobs.extend([array_to_blobproto(array) for array in arraylist])
    return vector.SerializeToString()


def blobprotovector_str_to_arraylist(data: bytes) -> list[np.ndarray]:
    """Parses a serialized BlobProtoVector into arrays."""
    vector = proto.caffe_pb2.BlobProtoVector.FromString(data)
    return [blobproto_to_array(blob) for blob in vector.blobs]


def array_to_datum(arr: np.ndarray, label: int | None = None) -> Any:
    """Converts an array (channels, height, width) to a Datum: bytes for uint8, else floats.

    Raises:
        ValueError: the array does not have three axes.
    """
    if np.ndim(arr) != 3:
        raise invalid(
            f"a Datum holds (channels, height, width), not an array of shape {np.shape(arr)}"
        )
    datum = proto.caffe_pb2.Datum()
    datum.channels, datum.height, datum.width = arr.shape
    if arr.dtype == np.uint8:
        datum.data = arr.tobytes()
    else:
        datum.float_data.extend(np.asarray(arr, np.float32).ravel().tolist())
    if label is not None:
        datum.label = label
    return datum


def datum_to_array(datum: Any) -> np.ndarray:
    """Converts a Datum to an array (channels, height, width): uint8 for bytes, else float32."""
    if len(datum.data):
        values = np.frombuffer(datum.data, np.uint8)
    else:
        values = np.array(datum.float_data, np.float32)
    return values.reshape(datum.channels, datum.height, datum.width)


def transformer_for(
    net: Any,
    mean: np.ndarray | None,
    input_scale: float | None,
    raw_scale: float | None,
    channel_swap: Sequence[int] | None,
) -> Transformer:
    """The Transformer from images (height, width, channels) to a net's first input."""
    name = net.inputs[0]
    transformer = Transformer({name: net.blobs[name].data.shape})
    transformer.set_transpose(name, (2, 0, 1))
    given = {"mean": mean, "input_scale": input_scale, "raw_scale": raw_scale}
    for what, value in {**given, "channel_swap": channel_swap}.items():
        if value is not None:
            getattr(transformer, f"set_{what}")(name, value)
    return transformer
