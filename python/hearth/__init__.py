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
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Returns __all__, __getattr__ and __dir__ for a package that imports each module when one of
    its names is first accessed.

    `homes` maps each module to the names that it defines, separated by spaces; ".context" is a
    module of the package. Type checkers read the package's imports under TYPE_CHECKING instead.
    """
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name], package), name)

    return list(modules), get, lambda: sorted(modules)
