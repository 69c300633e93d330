"""Locates compiled files: the modules `_core` and `_caffe`, the program `hearth`, C libraries.

In a wheel they are in this folder, in a checkout in `build/native`; the environment variable
HEARTH_NATIVE_DIR sets another folder. An archive of `hearth pack` also contains, in `libraries`,
the libraries of other packages and of the system that they depend on.
"""

import ctypes
import os
import platform
import sys
from contextlib import suppress
from importlib import machinery
from pathlib import Path

from hearth.errors import NotFoundError

_HERE = Path(__file__).resolve().parent


def _find() -> Path:
    if chosen := os.environ.get("HEARTH_NATIVE_DIR"):
        return Path(chosen)
    if any(_HERE.glob("_core*.so")):
        return _HERE
    return _HERE.parents[2] / "build" / "native"


DIRECTORY = _find()
if DIRECTORY != _HERE:
    __path__.append(str(DIRECTORY))
_CARRIED = DIRECTORY / "libraries"
_CARRIED_ENGINE = _CARRIED / "engine"


def _check_python() -> None:
    """Raises ImportError if the bindings are for another Python version or machine type."""
    built = sorted(DIRECTORY.glob("_core.*.so"))
    wanted = {f"_core{suffix}" for suffix in machinery.EXTENSION_SUFFIXES}
    if built and not any(path.name in wanted for path in built):
        raise ImportError(
            f"hearth's compiled parts ({built[0]}) are not for this Python, "
            f"{sys.version_info.major}.{sys.version_info.minor} on {platform.machine()} "
            f"({sys.executable}): use the Python that they were built or packed with"
        )


def _load_carried(folder: Path) -> None:
    """Loads a folder's libraries, unless the host has them, so that modules find them by name."""
    waiting, last = sorted(folder.glob("*.so*")), 0
    while waiting and len(waiting) != last:  # retry: libraries may depend on each other
        last = len(waiting)
        waiting = [path for path in waiting if not _loads(path)]


def _loads(path: Path) -> bool:
    for name in (path.name, str(path)):
        with suppress(OSError):
            ctypes.CDLL(name)
            return True
    return False


_check_python()
_load_carried(_CARRIED)


def program() -> Path:
    """The path of the `hearth` program.

    Raises:
        FileNotFoundError: the program was not built.
        ImportError: a library that is not part of the wheel is missing.
    """
    path = DIRECTORY / "hearth"
    if not path.is_file():
        raise NotFoundError(
            f"the hearth program is not at {path}: install the wheel with its [caffe] extra, "
            "or run `make build` in the checkout"
        )
    if DIRECTORY == _HERE and not _CARRIED_ENGINE.is_dir():
        _check_engine_libraries()
    return path


def _check_engine_libraries() -> None:
    """Raises ImportError if oneDNN or OpenMP is missing for a wheel's engine."""
    if not ((_HERE.parents[3] / "libdnnl.so.3").is_file() or _loads(Path("libdnnl.so.3"))):
        raise ImportError("Caffe's engine needs oneDNN: pip install 'hearth-spark[caffe]'")
    if not _loads(Path("libgomp.so.1")):
        raise ImportError(
            "Caffe's engine needs libgomp.so.1 of the system: install the package libgomp1 "
            "(Debian, Ubuntu) or libgomp (RHEL, Fedora)"
        )


def load_engine_libraries() -> None:
    """Loads an archive's libraries for the module `_caffe`, and sets HEARTH_TORCH_LIBRARIES."""
    _load_carried(_CARRIED_ENGINE)
    if folder := torch_libraries():
        os.environ.setdefault("HEARTH_TORCH_LIBRARIES", folder)


def torch_libraries() -> str | None:
    """The library folder of the installed torch, if any. Does not import torch."""
    found = machinery.PathFinder.find_spec("torch")
    for package in (found.submodule_search_locations or []) if found else []:
        folder = Path(package) / "lib"
        if (folder / "libtorch_cpu.so").is_file():
            return str(folder)
    return None


def environment() -> dict[str, str]:
    """This process's environment, with settings for the program's threads and libraries.

    If trainers share cores, an OpenMP thread that spins at a barrier can occupy the core of the
    thread it waits for; a thread that sleeps immediately is slow to wake. So threads spin for a
    fraction of a millisecond (apps/hearth.cc). Adds the library paths of an archive, and of the
    installed torch, which the device library needs.
    """
    environment = dict(os.environ)
    if "OMP_WAIT_POLICY" not in environment:
        environment.setdefault("GOMP_SPINCOUNT", "10000")
    if folder := torch_libraries():
        environment.setdefault("HEARTH_TORCH_LIBRARIES", folder)
    if _CARRIED.is_dir():
        folders = [str(_CARRIED), str(_CARRIED_ENGINE), environment.get("LD_LIBRARY_PATH")]
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, folders))
    return environment
