"""What tensors are compressed to while they travel."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


class NoneCompressor:
    """Leaves tensors as they are."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Returns (the compressed tensor, what decompress() takes as its second argument)."""
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Returns the tensor as it was, but for precision."""
        return tensor


class FP16Compressor:
    """Floating-point tensors travel as float16."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """Returns (the compressed tensor, its type before; None: it stays as it is)."""
        if not tensor.dtype.is_floating:
            return tensor, None
        return tf.cast(tensor, tf.float16), tensor.dtype

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Returns the tensor in its former type."""
        return tensor if ctx is None else tf.cast(tensor, ctx)


class Compression:
    """The compressors that there are."""

    none = NoneCompressor
    fp16 = FP16Compressor
