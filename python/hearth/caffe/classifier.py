"""Classifier: class probabilities of images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hearth.caffe import io
from hearth.caffe.modes import TEST
from hearth.caffe.net import Net

__all__ = ["Classifier"]


class Classifier(Net):
    """A net that classifies images of its first input's size."""

    def __init__(
        self,
        model_file: str,
        pretrained_file: str,
        image_dims: Sequence[int] | None = None,
        mean: np.ndarray | None = None,
        input_scale: float | None = None,
        raw_scale: float | None = None,
        channel_swap: Sequence[int] | None = None,
    ) -> None:
        """Loads the net.

        Args:
            model_file, pretrained_file: prototxt and .caffemodel.
            image_dims: (height, width) that images are resized to before cropping; default: the
                net's input size.
            mean, input_scale, raw_scale, channel_swap: see Transformer's setters.
        """
        super().__init__(model_file, TEST, weights=pretrained_file)
        self.transformer = io.transformer_for(self, mean, input_scale, raw_scale, channel_swap)
        self.crop_dims = np.array(self.blobs[self.inputs[0]].data.shape[2:])
        self.image_dims = tuple(image_dims) if image_dims else tuple(self.crop_dims)

    def predict(self, inputs: Sequence[np.ndarray], oversample: bool = True) -> np.ndarray:
        """Classifies images.

        Args:
            inputs: images (height, width, channels), as returned by load_image.
            oversample: average over ten crops of each image; otherwise use only the center crop.

        Returns:
            float32 (images, classes): the values of the net's first output.
        """
        images = [io.resize_image(image, self.image_dims) for image in inputs]
        if oversample:
            crops = io.oversample(images, self.crop_dims)
        else:
            (height, width), (rows, columns) = self.image_dims, self.crop_dims
            top, left = (height - rows) // 2, (width - columns) // 2
            crops = np.stack([im[top : top + rows, left : left + columns] for im in images])
        name = self.inputs[0]
        batch = np.stack([self.transformer.preprocess(name, crop) for crop in crops])
        predictions = self.forward_all(**{name: batch})[self.outputs[0]]
        if oversample:
            predictions = predictions.reshape(len(images), 10, -1).mean(1)
        return predictions
