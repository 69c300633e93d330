"""Horovod's module paths without a file in this package, such as `horovod.torch.mpi_ops`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_PACKAGE = "hearth.horovod."
# The modules whose names each path exports. A path is a package if other paths are below it.
_HOMES: dict[str, tuple[str, ...]] = {
    "common": (),
    "common.basics": ("basics", "reductions"),
    "common.elastic": ("elastic",),
    "common.exceptions": ("errors",),
    "common.process_sets": ("process_sets",),
    "common.util": ("builds",),
    "runner": ("launcher",),
    "tensorflow.mpi_ops": ("tensorflow",),
    "torch.mpi_ops": ("torch",),
}


class _Paths:
    """An importlib finder and loader of the modules of _HOMES."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        known = name.removeprefix(_PACKAGE)
        if known == name or known not in _HOMES:
            return None
        is_package = any(other.startswith(known + ".") for other in _HOMES)
        return ModuleSpec(name, self, is_package=is_package)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Returns None: importlib creates the module."""

    def exec_module(self, module: ModuleType) -> None:
        for home in _HOMES[module.__name__.removeprefix(_PACKAGE)]:
            names = vars(importlib.import_module(_PACKAGE + home))
            vars(module).update({n: v for n, v in names.items() if not n.startswith("_")})


def install() -> None:
    """Makes these modules importable. Idempotent."""
    if not any(isinstance(each, _Paths) for each in sys.meta_path):
        sys.meta_path.append(_Paths())
