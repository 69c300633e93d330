"""A PyTorch module as a function of NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hearth.rows.dense_arrays import fitted

if TYPE_CHECKING:
    from hearth.ml.predictors import Program


class TorchPredictor:
    """Calls a module in eval mode, on this process's GPU where it has one.

    Floats become the type of the module's weights, bytes of one length uint8 [rows, length].
    """

    def __init__(self, module: Any, program: Program):
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        module = module.to(self._device).eval()
        floats = (value.dtype for value in module.parameters() if value.is_floating_point())
        self._kind = next(floats, torch.float32)
        self._names = program.inputs
        self._bf16 = program.precision == "bf16"
        self._module = torch.compile(module) if program.compile else module

    def __call__(self, *arrays: np.ndarray) -> Any:
        """What the module gives. Raises ValueError for values that no tensor of it holds."""
        same = len(self._names) == len(arrays)
        names = self._names if same else [f"{i}" for i in range(len(arrays))]
        inputs = [self._tensor(a, name) for a, name in zip(arrays, names, strict=True)]
        with torch.inference_mode():
            if not self._bf16:
                return self._module(*inputs)
            with torch.autocast(self._device.type, torch.bfloat16):
                return self._module(*inputs)

    def _tensor(self, array: np.ndarray, name: str) -> Any:
        if array.dtype == object:
            array = _of_bytes(array, name)
        if array.dtype.kind not in "biuf":
            raise ValueError(f"the column {name!r} has the type {array.dtype}, which no tensor has")
        if array.dtype.kind != "f":
            return torch.from_numpy(_own(array)).to(self._device)
        wide = self._kind == torch.float64
        array = fitted(array, "float64" if wide else "float32", name)
        # The module may write to its inputs, and Spark's columns must not change.
        tensor = torch.from_numpy(_own(array))
        placed = tensor.to(self._device, self._kind)
        if placed.dtype != tensor.dtype:
            lost = placed.isinf().to(tensor.device) & tensor.isfinite()
            if lost.any():
                raise ValueError(
                    f"the column {name!r} has the value {tensor[lost][0].item()}, which the "
                    f"model's {self._kind} cannot hold: scale the column"
                )
        return placed


def _own(array: np.ndarray) -> np.ndarray:
    return array if array.flags.writeable else array.copy()


def _of_bytes(values: np.ndarray, name: str) -> np.ndarray:
    lengths = {len(value) if isinstance(value, bytes) else -1 for value in values}
    if len(lengths) > 1 or -1 in lengths:
        what = "texts" if -1 in lengths else f"bytes of different lengths ({sorted(lengths)[:4]})"
        raise ValueError(
            f"the column {name!r} has {what}, which make no tensor: make arrays of them by "
            "`prepare`, or in Spark"
        )
    return np.frombuffer(b"".join(values), np.uint8).reshape(len(values), -1)
