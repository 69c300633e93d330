"""Converts encoded images to arrays for training: decoded, cropped, resized, flipped and normalized
by the core's threads, without Python code per image.

    image("jpeg", size=224, crop="random", to="float32",
          mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))

An image's random crop and flip depend only on its seed, so a resumed run repeats them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from hearth.native import _core


class ImageTransform:
    """The result of `image()`. Immutable, picklable and thread-safe."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        threads = options["threads"]
        self._core = _core.ImageTransform(
            **{**options, "threads": len(os.sched_getaffinity(0)) if threads is None else threads}
        )

    @property
    def to(self) -> str:
        """The element type of the arrays: "uint8", "float32" or "bfloat16"."""
        return self._options["to"]

    def apply(
        self, images: Sequence[bytes | memoryview], seeds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Transforms a batch.

        Args:
            images: contents of JPEG or PNG files.
            seeds: one uint64 for each image, which determines its crop and flip.

        Returns:
            An array [n, 3, height, width], or [n, height, width, 3] with layout "nhwc" (bfloat16 as
            the uint16 array of its bits), and a bool array that marks undecodable images.
            Undecodable images are zeros in the first array; call `reason` for the cause.
        """
        return self._core.apply(images, np.ascontiguousarray(seeds, dtype=np.uint64))

    def reason(self, image: bytes | memoryview, seed: int = 0) -> str:
        """Why an image cannot be decoded, in one sentence; empty if it can."""
        return self._core.reason(image, seed)

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (self._options,)

    def __repr__(self) -> str:
        return f"hearth.data.image({', '.join(f'{k}={v!r}' for k, v in self._options.items())})"


def image(
    kind: str = "jpeg",
    size: int | tuple[int, int] = 224,
    crop: str | None = "random",
    flip: bool | None = None,
    *,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    to: str = "uint8",
    layout: str = "nchw",
    threads: int | None = None,
    scaled_decoding: bool = True,
) -> ImageTransform:
    """Creates a transform for a column of encoded images.

    Args:
        kind: "jpeg", "png", or "any" for both. Other formats cannot be decoded.
        size: the output's size, one number or (height, width).
        crop: "random": like torchvision's RandomResizedCrop (8 to 100 % of the area, aspect ratio
            3:4 to 4:3); "center": the short side resized to size * 256 / 224, then the center, as
            in the usual evaluation on ImageNet; None: the whole image, stretched to the size.
        flip: whether to mirror an image with probability 0.5; None: if crop is "random".
        mean, std: for red, green and blue; values become (pixel / 255 - mean) / std. None: 0 and 1.
        to: "uint8", "float32" or "bfloat16".
        layout: "nchw" or "nhwc".
        threads: the number of threads; None: one for each core available to this process.
        scaled_decoding: whether to decode a JPEG at a reduced size if the crop is more than 2.5
            times as large as the output. False is slower for such JPEGs, but its result is closer
            to PIL's.

    Raises:
        ValueError: an option is invalid.
    """
    height, width = (size, size) if isinstance(size, int) else size
    return ImageTransform(
        kind=kind,
        size=(height, width),
        crop=crop,
        flip=crop == "random" if flip is None else flip,
        mean=mean,
        std=std,
        to=to,
        layout=layout,
        threads=threads,
        scaled_decoding=scaled_decoding,
    )


def _make(options: dict[str, Any]) -> ImageTransform:
    return ImageTransform(**options)
