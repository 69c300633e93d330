"""Detector: classifies windows of pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from hearth.caffe import io
from hearth.caffe.modes import TEST
from hearth.caffe.net import Net

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
        """Loads the net; `context_pad` is what `configure_crop` takes, the rest as Classifier."""
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
            One {"window", "prediction", "filename"} per window.
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
            entry["prediction"] = prediction.reshape(-1)
        return found

    def detect_selective_search(self, image_fnames: Sequence[str]) -> NoReturn:
        """Raises NotImplementedError: pycaffe runs a MATLAB program for the windows."""
        raise NotImplementedError(
            "selective search is a MATLAB program outside of Caffe: give its windows to "
            "detect_windows"
        )

    def crop(self, im: np.ndarray, window: Sequence[int]) -> np.ndarray:
        """The window of a picture, with its context warped in where `context_pad` is set.

        Args:
            im: (height, width, channels).
            window: ymin, xmin, ymax, xmax.

        Returns:
            The window (height, width, channels); with context, of the net's input size, filled up
            with the mean outside of the picture.
        """
        top, left, bottom, right = (int(edge) for edge in window)
        if not self.context_pad:
            return im[top:bottom, left:right]
        size = np.array(self.blobs[self.inputs[0]].data.shape[2:])
        low, high = np.array([top, left], float), np.array([bottom, right], float)
        centre, half = (low + high) / 2, (high - low) / 2
        half = half * size / (size - 2 * self.context_pad)
        low, high = np.round(centre - half), np.round(centre + half)
        # What of the wider box lies in the picture, and where that is in the crop.
        inside_low = np.maximum(low, 0).astype(int)
        inside_high = np.minimum(high, im.shape[:2]).astype(int)
        scale = size / (high - low)
        begin = np.round((inside_low - low) * scale).astype(int)
        end = np.maximum(np.round((inside_high - low) * scale).astype(int), begin + 1)
        end = np.minimum(end, size)
        part = im[inside_low[0] : inside_high[0], inside_low[1] : inside_high[1]]
        crop = self.crop_mean.copy()
        crop[begin[0] : end[0], begin[1] : end[1]] = io.resize_image(part, end - begin)
        return crop

    def configure_crop(self, context_pad: int | None) -> None:
        """Sets how many pixels of context a crop has on each side, after warping; none for None."""
        name = self.inputs[0]
        self.context_pad = context_pad
        # What preprocess turns into 0: the mean, as a picture.
        zeros = np.zeros(self.blobs[name].data.shape[1:], np.float32)
        self.crop_mean = self.transformer.deprocess(name, zeros)
