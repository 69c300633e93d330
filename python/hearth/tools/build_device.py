"""Compiles the library for Caffe nets on GPUs, for the installed torch.

    hearth build-device               next to the other compiled parts
    hearth build-device --output DIR  to DIR: set HEARTH_DEVICE_LIBRARY to the file

A wheel has the library for one version of torch. Compiling needs a C++20 compiler (CXX, else g++)
and a minute.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hearth import native
from hearth.errors import HearthError

NAME = "libhearth_device_torch.so"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit status; a user's error is printed in one line."""
    try:
        return run(sys.argv[1:] if arguments is None else arguments)
    except HearthError as error:
        print(f"hearth build-device: {error}", file=sys.stderr)
        return 1


def run(arguments: Sequence[str]) -> int:
    """Like main(), but raises errors."""
    parser = argparse.ArgumentParser(
        prog="hearth build-device", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--output", type=Path, default=native.DIRECTORY, help="the output folder")
    given = parser.parse_args(arguments)
    library = given.output / NAME
    compile_library(library)
    print(f"{library} is built for torch {_torch_version()}")
    return 0


def compile_library(library: Path) -> None:
    """Compiles the sources installed with this package, or those of the checkout.

    Raises:
        HearthError: there is no compiler or no torch, or a source does not compile.
    """
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    if shutil.which(compiler[0]) is None:
        raise HearthError(f"no C++ compiler {compiler[0]} found: install g++ 11 or newer")
    root = _sources()
    sources = sorted(map(str, (root / "hearth/caffe/device").glob("*.cc")))
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / NAME
        command = [
            *compiler, "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden",
            *_torch_flags(), f"-I{root}", *sources, "-o", str(built), "-lc10", "-ltorch_cpu", "-ldl",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(done.stderr[-4000:], file=sys.stderr)
            raise HearthError(f"{compiler[0]} failed with torch {_torch_version()}; see above")
        try:
            library.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(built, library.with_suffix(".new"))
            library.with_suffix(".new").replace(library)
        except OSError as error:
            raise HearthError(
                f"{library} cannot be written ({error.strerror}): set another folder by --output"
            ) from error


def _sources() -> Path:
    """The folder that contains hearth/caffe/device with the sources."""
    for root in (native.DIRECTORY / "device", Path(__file__).resolve().parents[3]):
        if (root / "hearth/caffe/device/device_torch.cc").is_file():
            return root
    raise HearthError(f"there are no sources of the device library in {native.DIRECTORY}/device")


def _torch_flags() -> list[str]:
    folder = native.torch_libraries()
    if folder is None:
        raise HearthError("no torch is installed: pip install torch")
    include = Path(folder).parent / "include"
    # Older torch wheels use another C++ ABI.
    ask = "import torch; print(int(torch._C._GLIBCXX_USE_CXX11_ABI))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
    if done.returncode:
        raise HearthError(f"torch cannot be imported: {done.stderr.strip().splitlines()[-1]}")
    return [
        f"-D_GLIBCXX_USE_CXX11_ABI={done.stdout.strip()}", "-isystem", str(include),
        "-isystem", str(include / "torch/csrc/api/include"), f"-L{folder}",
        "-Wl,--allow-shlib-undefined", f"-Wl,-rpath,{folder}",
    ]  # fmt: skip


def _torch_version() -> str:
    from importlib import metadata

    return metadata.version("torch")


if __name__ == "__main__":
    sys.exit(main())
