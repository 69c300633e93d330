"""The data and the model that all examples share: scikit-learn's 8x8 digits, a small network."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(x_train, x_test, y_train, y_test): x float32 [n, 64] in [0, 1], y int64 [n]."""
    digits = load_digits()
    pixels = (digits.data / 16).astype(np.float32)
    return tuple(train_test_split(pixels, digits.target.astype(np.int64), random_state=0))


def frame(spark, pixels: np.ndarray, labels: np.ndarray):
    """A DataFrame with the columns `image` (array<float>) and `label` (bigint)."""
    import pyarrow as pa

    lists = pa.FixedSizeListArray.from_arrays(pa.array(pixels.reshape(-1)), pixels.shape[1])
    table = pa.table({"image": lists.cast(pa.list_(pa.float32())), "label": labels})
    return spark.createDataFrame(table)


def make_model():
    """A compiled Keras model: `image` [64] to 10 logits."""
    import keras

    keras.utils.set_random_seed(1)  # some initial weights only reach 0.94
    model = keras.Sequential(
        [
            keras.layers.Input((64,), name="image"),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(3e-3), loss, metrics=["accuracy"])
    return model


def accuracy(export_dir: str, pixels: np.ndarray, labels: np.ndarray) -> float:
    """The share of rows that the SavedModel classifies correctly."""
    import tensorflow as tf

    serve = tf.saved_model.load(export_dir).signatures["serving_default"]
    (name,) = serve.structured_input_signature[1]
    logits = next(iter(serve(**{name: tf.constant(pixels)}).values())).numpy()
    return float((logits.argmax(axis=1) == labels).mean())
