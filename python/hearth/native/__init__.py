"""The compiled parts: the modules `_core` and `_caffe`, the program `hearth`, the C libraries.

A wheel carries them in this folder. In a checkout they lie in `build/native`; the environment
variable HEARTH_NATIVE_DIR names another folder.
"""

import os
from importlib import metadata
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def _find() -> Path:
    chosen = os.environ.get("HEARTH_NATIVE_DIR")
    if chosen:
        return Path(chosen)
    if any(_HERE.glob("_core*.so")):
        return _HERE
    return _HERE.parents[2] / "build" / "native"


DIRECTORY = _find()
if DIRECTORY != _HERE:
    __path__.append(str(DIRECTORY))


def program() -> Path:
    """The path of the `hearth` program.

    Raises:
        FileNotFoundError: it was not built.
        ImportError: the torch that is installed is not the one that it was built for.
    """
    path = DIRECTORY / "hearth"
    if not path.is_file():
        raise FileNotFoundError(
            f"the hearth program is not at {path}: install the wheel with its [caffe] extra, "
            "or run `make build` in the checkout"
        )
    check_torch()
    return path


def check_torch() -> None:
    """Checks that the installed torch is the one that the engine was built for.

    C++ names differ between torch's minor versions: with another one the loader ends the program
    with status 127 before its first line.

    Raises:
        ImportError: torch is missing or of another version; the message says what to install.
    """
    built_for = DIRECTORY / "torch_version"
    if not built_for.is_file():  # built without torch: there is no engine
        return
    wanted = built_for.read_text(encoding="utf-8").strip()
    try:
        found = metadata.version("torch")
    except metadata.PackageNotFoundError:
        raise ImportError(
            f"this needs torch {wanted}, and none is installed: pip install 'hearth-spark[caffe]'"
        ) from None
    if found.split("+")[0].split(".")[:2] != wanted.split("."):
        raise ImportError(
            f"this hearth was built for torch {wanted}, but torch {found} is installed: "
            f"pip install 'torch=={wanted}.*'"
        )


def environment() -> dict[str, str]:
    """The environment to start the program in: this process's own, and how its threads wait.

    An OpenMP thread that spins at a barrier can keep the very thread it waits for off its core
    where trainers share cores; one that sleeps at once is slow to wake. So it spins for a fraction
    of a millisecond (apps/hearth.cc). OpenMP reads the variable when it is loaded, so the program
    cannot set it for itself.
    """
    if "OMP_WAIT_POLICY" in os.environ:
        return dict(os.environ)
    return {"GOMP_SPINCOUNT": "10000", **os.environ}
