"""A PyTorch module as a function of NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

from hearth.ml.torch_batches import as_tensor, float_kind, to_device
from hearth.torch import datasets

if TYPE_CHECKING:
    import numpy as np


class TorchPredictor:
    """A module in eval mode, called on this process's GPU if it has one.

    Floats are converted to the type of the module's weights, and bytes of one length to uint8
    [rows, length].
    """

    def __init__(self, module: Any, names: Sequence[str], compiles: bool, precision: str):
        """`names`: names of the module's inputs; `precision`: "" or "bf16"."""
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        module = module.to(self._device).eval()
        self._kind = float_kind(module)
        self._names = names
        self._bf16 = precision == "bf16"
        self._module = torch.compile(module) if compiles else module

    def __call__(self, *arrays: np.ndarray) -> Any:
        """The module's output. Raises ValueError for values that do not fit its tensors."""
        same = len(self._names) == len(arrays)
        names = self._names if same else [f"{i}" for i in range(len(arrays))]
        inputs = [self._tensor(a, name) for a, name in zip(arrays, names, strict=True)]
        with torch.inference_mode(), self._autocast():
            found = self._module(*inputs)
        return tuple(found) if isinstance(found, list) else found

    def _autocast(self) -> AbstractContextManager[Any]:
        if self._bf16:
            return torch.autocast(self._device.type, torch.bfloat16)
        return nullcontext()

    def _tensor(self, array: np.ndarray, name: str) -> Any:
        # Copies to writable memory, because Spark's columns must not change.
        tensor = as_tensor(datasets.as_tensor(array, name), name)
        return to_device(tensor, self._device, self._kind, name)
