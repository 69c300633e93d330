"""Hearth: Caffe, TensorFlow and PyTorch training inside Spark executors.

Importing this package loads neither torch nor pyspark nor the native core.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
__all__ = ["HearthError", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "HearthError":
        from hearth.native.failure import hearth_error

        return hearth_error()
    raise AttributeError(f"module 'hearth' has no attribute {name!r}")
