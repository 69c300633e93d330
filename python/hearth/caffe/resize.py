"""Resizes images like pycaffe, which uses scikit-image or SciPy depending on the channel count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hearth.errors import invalid

__all__ = ["resize_image"]


def _weights(positions: np.ndarray, low: np.ndarray, array: np.ndarray, axis: int) -> np.ndarray:
    """The interpolation weight of each position's upper neighbor, shaped to multiply `array`."""
    shape = [1] * array.ndim
    shape[axis] = len(positions)
    return (positions - low).astype(array.dtype).reshape(shape)


def _between(array: np.ndarray, axis: int, positions: np.ndarray) -> np.ndarray:
    """Linearly interpolates `array` at possibly fractional `positions` along `axis`."""
    low = np.minimum(np.floor(positions).astype(int), array.shape[axis] - 1)
    high = np.minimum(low + 1, array.shape[axis] - 1)
    weight = _weights(positions, low, array, axis)
    return np.take(array, low, axis) * (1 - weight) + np.take(array, high, axis) * weight


def _nearest(array: np.ndarray, axis: int, positions: np.ndarray) -> np.ndarray:
    """The elements of `array` nearest to the positions along `axis`; halves round up."""
    nearest = np.floor(positions + 0.5).astype(int)
    return np.take(array, np.clip(nearest, 0, array.shape[axis] - 1), axis)


def _bordered(image: np.ndarray) -> np.ndarray:
    """Adds a one-pixel border of the image's minimum."""
    around = [(1, 1), (1, 1), *[(0, 0)] * (image.ndim - 2)]
    return np.pad(image, around, constant_values=image.min())


def _by_centres(image: np.ndarray, new_dims: Sequence[int], order: int) -> np.ndarray:
    """Resizes so that the images' outer edges coincide (pixels are areas).

    In an enlarged image, some positions lie outside the old outer pixel centers. At those
    positions, scikit-image reads 0, which is the image's minimum, because pycaffe first scales the
    image to [0, 1].
    """
    old_dims = image.shape
    if order == 1:
        image = _bordered(image)
    for axis in (0, 1):
        size = int(new_dims[axis])
        positions = (np.arange(size) + 0.5) * old_dims[axis] / size - 0.5
        image = (
            _nearest(image, axis, positions) if order == 0 else _between(image, axis, positions + 1)
        )
    return image


def _by_corners(image: np.ndarray, new_dims: Sequence[int], order: int) -> np.ndarray:
    """Resizes so that the images' first and last pixels coincide (pixels are points)."""
    for axis in (0, 1):
        size = int(new_dims[axis])
        positions = np.arange(size) * (image.shape[axis] - 1) / max(size - 1, 1)
        image = (_nearest if order == 0 else _between)(image, axis, positions)
    return image


def _rounded(values: np.ndarray, like: np.dtype) -> np.ndarray:
    """Rounds to integers if the input had integers, like SciPy."""
    return values if like.kind == "f" else np.copysign(np.floor(np.abs(values) + 0.5), values)


def resize_image(im: np.ndarray, new_dims: Sequence[int], interp_order: int = 1) -> np.ndarray:
    """Resizes an image of any number of channels, without smoothing.

    Like pycaffe, images of one or three channels are resized like scikit-image's `resize` with
    `mode="constant"` and without anti-aliasing, others like `scipy.ndimage.zoom`.

    Args:
        im: (height, width, channels).
        new_dims: the new (height, width).
        interp_order: 1 for bilinear, 0 for the nearest pixel.

    Returns:
        float32 (new height, new width, channels).

    Raises:
        ValueError: `interp_order` is neither 0 nor 1, or the image has no pixels.
    """
    if interp_order not in (0, 1):
        raise invalid(f"interp_order {interp_order} is not 0 (nearest) or 1 (bilinear)")
    given = np.asarray(im)
    if given.size == 0:
        raise invalid(f"an image of the shape {given.shape} has no pixels to resize")
    image = given if given.dtype in (np.float32, np.float64) else given.astype(np.float64)
    if given.shape[:2] == tuple(new_dims):
        return image.astype(np.float32)
    if given.ndim < 3 or given.shape[-1] in (1, 3):
        return _by_centres(image, new_dims, interp_order).astype(np.float32, copy=False)
    resized = _by_corners(image, new_dims, interp_order)
    return _rounded(resized, given.dtype).astype(np.float32, copy=False)
