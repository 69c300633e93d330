"""A Keras model as a function of NumPy arrays. Independent of the backend; does not load Keras."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hearth.rows.dense_arrays import byte_rows, fitted

_AS_THEY_ARE = ("string", "bfloat16")  # types of inputs that NumPy lacks


class KerasPredictor:
    """A Keras model, called with arrays in the order of its inputs; casts the arrays to the inputs'
    types."""

    def __init__(self, model: Any, names: Sequence[str]):
        """`names`: names of the input arrays, used in error messages."""
        self._model = model
        self._names = names
        self._kinds = [str(value.dtype) for value in getattr(model, "inputs", None) or []]

    def __call__(self, *arrays: np.ndarray) -> Any:
        """The model's output; several outputs as a tuple. Raises ValueError for values that its
        inputs cannot represent."""
        if len(self._kinds) == len(arrays):
            same = len(self._names) == len(arrays)
            names = self._names if same else [f"{i}" for i in range(len(arrays))]
            arrays = tuple(map(_fitted, arrays, self._kinds, names))
        found = self._model.predict_on_batch(arrays[0] if len(arrays) == 1 else list(arrays))
        return tuple(found) if isinstance(found, list) else found


def _fitted(array: np.ndarray, kind: str, name: str) -> np.ndarray:
    if kind in _AS_THEY_ARE:
        return array
    return fitted(byte_rows(array, name) if array.dtype == object else array, kind, name)
