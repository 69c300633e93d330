"""Hearth: Caffe, TensorFlow and PyTorch training inside Spark executors.

Importing this package loads neither torch nor pyspark nor the native core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from hearth.errors import HearthError

__version__ = "0.2.0"
__all__ = ["HearthError", "__version__"]


def on_demand(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's __getattr__ and __dir__, by which importing it loads nothing: a name's module is
    imported when the name is asked for. `homes`: the modules by name; ".context" is the package's
    own. Type checkers read the package's imports under TYPE_CHECKING instead.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name], package), name)

    return get, lambda: sorted(homes)
