"""Registers the core's file systems with TensorFlow."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from hearth import native
from hearth.errors import NotFoundError

_LIBRARY = "libhearth_tensorflow_files.so"
_lock = threading.Lock()
_registered = False


def register_filesystems() -> None:
    """Lets TensorFlow open hdfs:, viewfs:, webhdfs: and swebhdfs:. Idempotent.

    Raises:
        FileNotFoundError: hearth was built without TensorFlow.
        ImportError: TensorFlow is not installed.
    """
    global _registered
    with _lock:
        if _registered:
            return
        library = native.DIRECTORY / _LIBRARY
        if not library.is_file():
            raise NotFoundError(
                f"TensorFlow's file systems are not at {library}: build hearth in an environment "
                "that has TensorFlow"
            )
        import tensorflow

        tensorflow.experimental.register_filesystem_plugin(str(library))
        _registered = True


def register_when_imported() -> None:
    """Registers the file systems when this process imports TensorFlow, or at once if TensorFlow is
    already imported.

    Does nothing if hearth was built without TensorFlow.
    """
    if not (native.DIRECTORY / _LIBRARY).is_file():
        return
    if "tensorflow" in sys.modules:
        register_filesystems()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """An importlib finder: finds TensorFlow with the other finders, and hooks the end of its
    import."""

    def __init__(self) -> None:
        self._asking = threading.local()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "tensorflow" or getattr(self._asking, "now", False):
            return None
        self._asking.now = True
        try:
            spec = find_spec(name)
        finally:
            self._asking.now = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self)
        return spec


class _Loader(Loader):
    """TensorFlow's loader; registers the file systems after the import."""

    def __init__(self, loader: Any, finder: _Finder):
        self._loader = loader
        self._finder = finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._loader
        with suppress(ValueError):  # another thread has removed the finder
            sys.meta_path.remove(self._finder)
        try:
            register_filesystems()
        except Exception as error:  # programs without hdfs: paths continue
            warnings.warn(f"TensorFlow cannot open hdfs: URIs here: {error}", stacklevel=2)
