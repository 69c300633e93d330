"""Detector: classifies windows of images."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hearth.caffe import io
from hearth.caffe.modes import TEST
from hearth.caffe.net import Net
from hearth.errors import UnimplementedError, invalid

__all__ = ["Detector"]


class Detector(Net):
    """A net that classifies windows, cropped and warped to its first input's size."""

    def __init__(
        self,
        model_file: str,
        pretrained_file: str,
        mean: np.ndarray | None = None,
        input_scale: float | None = None,
        raw_scale: float | None = None,
        channel_swap: Sequence[int] | None = None,
        context_pad: int | None = None,
    ) -> None:
        """Loads the net. `context_pad`: see `configure_crop`; the other arguments are
        Classifier's."""
        super().__init__(model_file, TEST, weights=pretrained_file)
        self.transformer = io.transformer_for(self, mean, input_scale, raw_scale, channel_swap)
        self.configure_crop(context_pad)

    def detect_windows(
        self, images_windows: Iterable[tuple[str, np.ndarray]]
    ) -> list[dict[str, Any]]:
        """Classifies windows.

        Args:
            images_windows: (file name, windows (n, 4) of ymin, xmin, ymax, xmax in pixels).

        Returns:
            For each window, a dict with the keys "window", "prediction" and "filename".
        """
        found: list[dict[str, Any]] = []
        crops = []
        name = self.inputs[0]
        for filename, windows in images_windows:
            image = io.load_image(filename)
            for window in windows:
                crops.append(self.transformer.preprocess(name, self.crop(image, window)))
                found.append({"window": window, "filename": filename})
        if not found:
            return found
        predictions = self.forward_all(**{name: np.stack(crops)})[self.outputs[0]]
        for entry, prediction in zip(found, predictions, strict=True):
            entry["prediction"] = prediction
        return found

    def detect_selective_search(self, image_fnames: Sequence[str]) -> list[dict[str, Any]]:
        """Like detect_windows, for windows proposed by selective search.

        Raises:
            NotImplementedError: the module selective_search_ijcv_with_python is missing. That
                module runs a MATLAB program and is not part of Caffe.
        """
        try:
            import selective_search_ijcv_with_python as selective_search
        except ImportError:
            raise UnimplementedError(
                "selective search needs the module selective_search_ijcv_with_python, which runs "
                "MATLAB: install it, or pass your windows to detect_windows"
            ) from None
        names = [os.path.abspath(name) for name in image_fnames]  # MATLAB runs in another folder
        windows = selective_search.get_windows(names, cmd="selective_search_rcnn")
        return self.detect_windows(zip(names, windows, strict=True))

    def crop(self, im: np.ndarray, window: Sequence[int]) -> np.ndarray:
        """Crops a window of an image; if `context_pad` is set, adds context and warps the crop.

        Args:
            im: (height, width, channels).
            window: ymin, xmin, ymax, xmax.

        Returns:
            The window (height, width, channels). With context, it has the net's input size, and
            pixels outside of the image are the mean.

        Raises:
            ValueError: with context, the window is outside of the image.
        """
        top, left, bottom, right = (int(edge) for edge in window)
        if not self.context_pad:
            return im[top:bottom, left:right]
        low, high, scale = self._wider(np.asarray(window, float))
        # Clip the wider box to the image, and compute the clipped box's position in the crop.
        begin = np.round(np.maximum(-low, 0) * scale).astype(int)
        low, high = np.clip(low, 0, im.shape[:2]), np.clip(high, 0, im.shape[:2])
        end = begin + np.round((high - low + 1) * scale).astype(int)
        end = np.minimum(end, self.crop_dims[:2])
        part = im[int(low[0]) : int(high[0]), int(low[1]) : int(high[1])]
        if part.size == 0 or (end <= begin).any():
            raise invalid(f"the window {tuple(window)} is not in an image of shape {im.shape}")
        crop = self.crop_mean.copy()
        crop[begin[0] : end[0], begin[1] : end[1]] = io.resize_image(part, end - begin)
        return crop

    def _wider(self, window: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The first and the last (row, column) of a window with context, and the scale to the crop.

        Both ends of a window are inclusive, as models trained with pycaffe expect: its height is
        ymax - ymin + 1.
        """
        low, high = window[:2], window[2:]
        half = (high - low + 1) / 2
        centre = low + half
        size = self.crop_dims[:2]
        half = half * size / (size - 2 * self.context_pad)
        low, high = np.round(centre - half), np.round(centre + half)
        return low, high, size / (high - low + 1)

    def configure_crop(self, context_pad: int | None) -> None:
        """Sets how many pixels of context a warped crop has on each side; None: no context."""
        name = self.inputs[0]
        self.context_pad = context_pad
        channels, height, width = self.blobs[name].data.shape[1:]
        self.crop_dims = np.array([height, width, channels])
        # The image that preprocess() maps to zeros: the mean image.
        zeros = np.zeros(self.blobs[name].data.shape[1:], np.float32)
        self.crop_mean = self.transformer.deprocess(name, zeros)
