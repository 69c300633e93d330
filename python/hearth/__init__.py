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
    """Lazy imports of a package: its __all__, and its __getattr__ and __dir__, which import a
    name's module on first access.

    `homes`: names, separated by spaces, by module; ".context" is the package's own. Type checkers
    read the package's imports under TYPE_CHECKING instead.
    """
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name], package), name)

    return list(modules), get, lambda: sorted(modules)
