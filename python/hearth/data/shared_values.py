"""Passes values to another process on this host, with arrays in shared memory.

Each value is stored in a separate anonymous file in memory: the pickle, then the arrays, each
aligned to 64 bytes. So the receiver owns the loaded arrays and may write to them.
"""

from __future__ import annotations

import mmap
import os
import pickle
import sys
from collections.abc import Sequence
from io import BytesIO
from typing import Any

_ALIGNMENT = 64
# Smaller arrays are cheaper inside the pickle than as separate buffers.
_SMALL_BYTES = 16 << 10


def store(value: Any) -> tuple[int, list[int]]:
    """Stores a value; returns load()'s arguments. The caller closes the descriptor.

    Raises:
        OSError: out of memory.
        pickle.PicklingError, TypeError, AttributeError: the value cannot be pickled.
    """
    arrays: list[memoryview] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= _SMALL_BYTES:
            arrays.append(raw)
        return raw.nbytes < _SMALL_BYTES

    pickled = BytesIO()
    _Pickler(pickled, protocol=5, buffer_callback=is_small).dump(value)
    parts = [pickled.getbuffer(), *arrays]
    fd = os.memfd_create("hearth-batch", os.MFD_CLOEXEC)
    try:
        at = 0
        for part in parts:
            _write(fd, at, part)
            at += _padded(part.nbytes)
        os.ftruncate(fd, at)
    except BaseException:
        os.close(fd)
        raise
    return fd, [part.nbytes for part in parts]


def load(fd: int, sizes: Sequence[int]) -> Any:
    """Loads a value that store() has written; closes the descriptor."""
    try:
        memory = memoryview(mmap.mmap(fd, sum(map(_padded, sizes))))
    finally:
        os.close(fd)
    parts, at = [], 0
    for size in sizes:
        parts.append(memory[at : at + size])
        at += _padded(size)
    return pickle.loads(parts[0], buffers=parts[1:])


class _Pickler(pickle.Pickler):
    """Pickles PyTorch's CPU tensors as arrays."""

    def reducer_override(self, value: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is None or type(value) is not torch.Tensor:
            return NotImplemented
        if value.device.type != "cpu" or value.layout != torch.strided or value.requires_grad:
            return NotImplemented
        plain = value.resolve_conj().resolve_neg().contiguous()
        flat = plain.view(-1).view(torch.uint8).numpy()
        return _tensor, (flat, str(value.dtype).removeprefix("torch."), tuple(value.shape))


def _tensor(flat: Any, kind: str, shape: tuple[int, ...]) -> Any:
    import torch

    return torch.from_numpy(flat).view(getattr(torch, kind)).view(shape)


def _write(fd: int, at: int, part: memoryview) -> None:
    while part:
        written = os.pwrite(fd, part, at)
        part, at = part[written:], at + written


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
