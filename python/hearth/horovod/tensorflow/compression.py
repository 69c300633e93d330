"""Compression of tensors for sending."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


class NoneCompressor:
    """A compressor that changes nothing."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Returns (the compressed tensor, the second argument of decompress())."""
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Returns the tensor, with reduced precision."""
        return tensor


class FP16Compressor:
    """A compressor that converts floating-point tensors to float16."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Returns (the compressed tensor, its original type; None if it is unchanged)."""
        if not tensor.dtype.is_floating:
            return tensor, None
        return tf.cast(tensor, tf.float16), tensor.dtype

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Returns the tensor in its original type."""
        return tensor if ctx is None else tf.cast(tensor, ctx)


class Compression:
    """The available compressors."""

    none = NoneCompressor
    fp16 = FP16Compressor
