"""`hearth train|test|time -gpu`: results on simulated GPUs equal those on the CPU."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from program import TIMEOUT_S, messages, run, write_solver

from hearth import native
from hearth.native import _caffe

NET = """name: "images"
layer { name: "x" type: "DummyData" top: "x" top: "t"
  dummy_data_param { shape { dim: 4 dim: 2 dim: 6 dim: 6 } shape { dim: 4 dim: 2 }
    data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 2 } } }
layer { name: "conv" type: "Convolution" bottom: "x" top: "c"
  convolution_param { num_output: 3 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "c" top: "c" }
layer { name: "pool" type: "Pooling" bottom: "c" top: "p"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "drop" type: "Dropout" bottom: "p" top: "p" }
layer { name: "ip" type: "InnerProduct" bottom: "p" top: "y"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
"""
OPTIONS = "momentum: 0.9 test_iter: 2 test_interval: 10 snapshot: 10"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_solver(tmp_path, OPTIONS, NET)
    return tmp_path


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulates two GPUs."""
    monkeypatch.setenv("HEARTH_SIMULATED_GPUS", "2")


def weights(folder: Path) -> list[np.ndarray]:
    net = _caffe.Net(NET, "TEST")
    net.copy_from(str(folder / "snap_iter_20.caffemodel"))
    return [blob.data.copy() for layer in ("conv", "ip") for blob in net.params[layer]]


def train(folder: Path, *flags: str) -> tuple[list[str], list[np.ndarray]]:
    log = messages(run("train", "-solver", "solver.prototxt", *flags, cwd=folder))
    return log, weights(folder)


def test_a_device_trains_as_the_cpu_does(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, expected = train(folder)
    if "Use CPU." not in log:
        pytest.skip("this machine has a GPU")
    monkeypatch.setenv("HEARTH_SIMULATED_GPUS", "2")
    for flags in ([], ["-gpu", "1"]):  # GPU is the solver's default mode
        log, got = train(folder, *flags)
        assert "Use GPU 0." in log
        for ours, theirs in zip(got, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("gpus")
def test_several_devices_train_one_model(folder: Path) -> None:
    log, _ = train(folder, "-gpu", "all")
    assert {"Rank 0 computes on GPU 0", "Rank 1 computes on GPU 0"} <= set(log)
    assert "Optimization Done." in log


@pytest.mark.usefixtures("gpus")
def test_nccl_sums_gradients_on_the_devices_with_the_same_weights(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stand-ins for CUDA's driver and NCCL are loaded (hearth/collective/testing/stand_in)."""
    stand_ins = native.program().parents[1] / "hearth" / "collective" / "stand_in"
    if not stand_ins.exists():
        pytest.skip("the stand-ins are not built: ninja -C build hearth_collective_test")
    by_host = "2 ranks exchange GPU memory through host memory (rank 0"
    log, expected = train(folder, "-gpu", "all")
    assert any(line.startswith(by_host) and "cannot be loaded" in line for line in log)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(stand_ins))
    log, got = train(folder, "-gpu", "all")
    assert "2 ranks exchange GPU memory by NCCL 2.29.0" in log
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    monkeypatch.setenv("HEARTH_TRANSPORT", "shm")
    log, _ = train(folder, "-gpu", "all")
    assert any(line.startswith(by_host) and "shm is required" in line for line in log)


@pytest.mark.usefixtures("gpus")
def test_a_resumed_run_ends_with_the_same_weights(folder: Path) -> None:
    _, expected = train(folder, "-gpu", "0")
    _, got = train(folder, "-gpu", "0", "-snapshot", "snap_iter_10.solverstate")
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.usefixtures("gpus")
def test_solver_mode_cpu_selects_the_cpu(folder: Path) -> None:
    write_solver(folder, OPTIONS + " solver_mode: CPU", NET)
    log, _ = train(folder)
    assert "Use CPU." in log


@pytest.mark.usefixtures("gpus")
def test_test_and_time_take_the_flag(folder: Path) -> None:
    train(folder)
    flags = ["-model", "net.prototxt", "-iterations", "2", "-gpu", "0"]
    weight = ["-weights", "snap_iter_20.caffemodel"]
    assert "Use GPU 0." in messages(run("test", *flags, *weight, cwd=folder))
    assert "Use GPU 0." in messages(run("time", *flags, cwd=folder))
    refused = run("test", *flags[:-1], "7", *weight, cwd=folder, status=1)
    assert 'no device "7"; this machine has 2' in refused


@pytest.mark.parametrize("count", ["abc", "-1", "2 ", "65"])
def test_an_invalid_number_of_simulated_gpus_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch, count: str
) -> None:
    monkeypatch.setenv("HEARTH_SIMULATED_GPUS", count)
    said = run("train", "-solver", "solver.prototxt", cwd=folder, status=1)
    assert f"HEARTH_SIMULATED_GPUS={count} must be a number of devices" in said


def test_without_a_gpu_the_cpu_is_used_with_a_warning(folder: Path) -> None:
    if _caffe.count_gpus() > 0:
        pytest.skip("this machine has a GPU")
    log, _ = train(folder, "-gpu", "0")
    assert "Use CPU." in log
    assert "-gpu 0: no CUDA device is available to this process; using the CPU" in log


@pytest.mark.parametrize("program", ["hearth", "python"])
def test_the_cuda_library_is_loaded_before_the_engine(
    folder: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """Another library stands in for the driver and has no device, so the CPU is used."""
    shutil.copy(native.program().parent / "libhearth_feed.so", folder / "libcuda.so.1")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    if program == "hearth":
        log = run("time", "-model", "net.prototxt", "-iterations", "1", cwd=folder)
        log += run("time", "-model", "net.prototxt", "-gpu", "0", "-iterations", "1", cwd=folder)
    else:
        code = (
            "from hearth.native import _caffe\n"
            "_caffe.Net(open('net.prototxt').read(), 'TRAIN').forward()\n"
            "assert _caffe.count_gpus() == 0\n"
            "assert 'libtorch_cuda.so' in open('/proc/self/maps').read()\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        log = done.stderr
        assert done.returncode == 0, log
    assert "too late" not in log
    assert "cannot be loaded" not in log
