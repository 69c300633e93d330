"""The wheel on an old system: the loader, glibc (2.31) and GCC's libraries of Debian 11."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.timeout(1800)

_PACKAGES = ("libc6", "libgcc-s1", "libstdc++6", "libgomp1")
_SOURCE = (
    "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
    "http://deb.debian.org/debian bullseye main\n"
)
_NET = """name: "digits"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
  transform_param { scale: 0.0039 } data_param { source: "train" backend: LMDB batch_size: 64 } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
  transform_param { scale: 0.0039 } data_param { source: "test" batch_size: 60 backend: LMDB } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
_SOLVER = """net: "net.prototxt" max_iter: 400 base_lr: 0.05 momentum: 0.9 lr_policy: "fixed"
test_iter: 6 test_interval: 400 snapshot_prefix: "digits" snapshot_format: HDF5 random_seed: 1
"""


@pytest.fixture(scope="module")
def old_libraries(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Folders with an old system's libraries, which apt fetches with separate lists and caches."""
    folder = tmp_path_factory.mktemp("bullseye")
    (folder / "sources.list").write_text(_SOURCE)
    for name in ("state/lists/partial", "cache/archives/partial", "root"):
        (folder / name).mkdir(parents=True)
    options = {
        "Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "-",
        "Dir::State": folder / "state", "Dir::State::status": "/dev/null",
        "Dir::Cache": folder / "cache", "APT::Architecture": "amd64",
        "APT::Sandbox::User": "root",
    }  # fmt: skip
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    for command in ("update", "download"):
        packages = _PACKAGES if command == "download" else ()
        done = subprocess.run(
            [*apt, command, *packages], cwd=folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, folder / "root"], check=True)
    return [folder / "root" / base / "x86_64-linux-gnu" for base in ("lib", "usr/lib")]


def loader_command(libraries: list[Path]) -> list[str]:
    loader = str(libraries[0] / "ld-linux-x86-64.so.2")
    return [loader, "--library-path", ":".join(map(str, libraries))]


def native_files(environment: Path) -> Path:
    (folder,) = environment.glob("lib/python3*/site-packages/hearth/native")
    return folder


def write_digits(environment: Path, folder: Path) -> None:
    """Writes the demo's digits in MNIST's format, and a net that learns them."""
    with np.load(native_files(environment).parent / "demo" / "digits.npz") as digits:
        images, labels = digits["images"] * 15, digits["labels"]
    for name, part in {"train": slice(0, 1437), "test": slice(1437, None)}.items():
        pixels = images[part].astype(np.uint8)
        header = struct.pack(">4i", 2051, *pixels.shape)
        (folder / f"{name}-images").write_bytes(header + pixels.tobytes())
        header = struct.pack(">2i", 2049, len(pixels))
        (folder / f"{name}-labels").write_bytes(header + labels[part].tobytes())
    (folder / "net.prototxt").write_text(_NET)
    (folder / "solver.prototxt").write_text(_SOLVER)


def test_the_program_trains_the_digits_there(
    caffe_environment: Path, old_libraries: list[Path], tmp_path: Path
) -> None:
    write_digits(caffe_environment, tmp_path)
    program = [*loader_command(old_libraries), str(native_files(caffe_environment) / "hearth")]
    known = {"PATH": os.environ["PATH"], "GOMP_SPINCOUNT": "10000"}

    def hearth(*arguments: str) -> str:
        done = subprocess.run(
            [*program, *arguments], cwd=tmp_path, env=known, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stderr

    for name in ("train", "test"):
        hearth("convert_mnist_data", "-backend=lmdb", f"{name}-images", f"{name}-labels", name)
    log = hearth("train", "--solver=solver.prototxt")
    accuracy = [float(value) for value in re.findall(r"accuracy = ([\d.]+)", log)]
    assert accuracy[0] < 0.3 and accuracy[-1] > 0.85, log
    assert (tmp_path / "digits_iter_400.caffemodel.h5").exists()


def test_every_library_is_resolved_there(
    caffe_environment: Path, old_libraries: list[Path]
) -> None:
    """Includes the Python modules. No old Python can load them, but the loader checks their
    symbols' versions.
    """
    files = {
        file.name.partition(".")[0]: file for file in native_files(caffe_environment).glob("*.so")
    }
    del files["libhearth_device_torch"]  # loaded only with torch, which is not installed
    assert len(files) >= 5
    for file in files.values():
        command = [*loader_command(old_libraries), "--list", str(file)]
        done = subprocess.run(command, capture_output=True, text=True)
        said = done.stdout + done.stderr
        assert "not found" not in said and "libc.so.6" in said, said
