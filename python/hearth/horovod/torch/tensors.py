"""Converts tensors to what the engine takes: NumPy arrays on the CPU, and the name of their
type."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def kind_of(tensor: Tensor) -> str:
    """The name of the tensor's type, such as "float32"."""
    return str(tensor.dtype).removeprefix("torch.")


def array_of(tensor: Tensor) -> Any:
    """The tensor's values as a contiguous array, which shares the memory of a contiguous CPU
    tensor. bfloat16 is returned as bits."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16)
    return tensor.numpy()


def tensor_of(array: Any, like: Tensor) -> Tensor:
    """A tensor with the type and device of `like`; on the CPU it shares the array's memory."""
    if like.dtype == torch.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).to(like.device)
    return torch.from_numpy(array).to(like.device)


def is_shared(array: Any, tensor: Tensor) -> bool:
    """Whether the array shares the tensor's memory."""
    return tensor.device.type == "cpu" and array.ctypes.data == tensor.data_ptr()
