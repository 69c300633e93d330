"""`hearth test`, `time`, `device_query` and the upgrade tools print the lines of Caffe's tools."""

from __future__ import annotations

import re
import resource
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from hearth.native._core import parse_prototxt
from program import NET, messages, run, write_solver

from hearth import native

OLD_NET = """name: "old"
input: "x"
input_dim: 1
input_dim: 3
input_dim: 4
input_dim: 4
layers { name: "c" type: CONVOLUTION bottom: "x" top: "c" blobs_lr: 1
  convolution_param { num_output: 2 kernel_size: 3 } }
"""
NEW_NET = """name: "old"
layer { name: "input" type: "Input" top: "x"
  input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } }
layer { name: "c" type: "Convolution" bottom: "x" top: "c" param { lr_mult: 1 }
  convolution_param { num_output: 2 kernel_size: 3 } }
"""


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A folder with net.prototxt and its weights, trained.caffemodel."""
    run("train", "-solver", write_solver(tmp_path), cwd=tmp_path)
    (tmp_path / "snap_iter_20.caffemodel").rename(tmp_path / "trained.caffemodel")
    return tmp_path


def test_test_prints_every_batch_and_the_means(trained: Path) -> None:
    flags = ["-model", "net.prototxt", "-weights", "trained.caffemodel", "-iterations=3"]
    log = messages(run("test", *flags, cwd=trained))
    assert "Running for 3 iterations." in log
    batches = [re.fullmatch(r"Batch (\d), loss = (\S+)", line) for line in log]
    values = {int(found[1]): float(found[2]) for found in batches if found}
    assert sorted(values) == [0, 1, 2]
    mean = values[0]  # because the data are constant
    assert f"Loss: {mean:.6g}" in log
    assert f"loss = {mean:.6g} (* 1 = {mean:.6g} loss)" in log


def test_time_prints_the_means_of_every_layer(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(NET)
    log = messages(run("time", "-model", "net.prototxt", "-iterations", "5", cwd=tmp_path))
    number = r"([-+.\de]+)"
    assert "Testing for 5 iterations." in log
    assert sum(line.startswith("Iteration: ") for line in log) == 5
    means = {"forward": 0.0, "backward": 0.0}
    for layer in ("x", "ip", "loss"):
        for pass_ in means:
            line = next(x for x in log if re.match(rf" +{layer}\t{pass_}: {number} ms\.$", x))
            means[pass_] += float(line.split()[-2])
    for pass_, total in means.items():
        line = next(x for x in log if x.startswith(f"Average {pass_.capitalize()} pass: "))
        assert float(line.split()[-2]) == pytest.approx(total, rel=0.2, abs=0.01)
    assert any(re.fullmatch(rf"Total Time: {number} ms\.", line) for line in log)
    assert log[-1] == "*** Benchmark ends ***"


def test_time_runs_the_requested_phase(tmp_path: Path) -> None:
    test_only = 'layer { name: "t" type: "Power" bottom: "y" top: "z" include { phase: TEST } }'
    (tmp_path / "net.prototxt").write_text(NET + test_only)
    flags = ["-model", "net.prototxt", "-iterations", "1"]
    assert "\tforward: " in run("time", *flags, cwd=tmp_path)
    assert " t\tforward" not in run("time", *flags, cwd=tmp_path)
    assert " t\tforward" in run("time", *flags, "-phase", "TEST", cwd=tmp_path)


def test_device_query_describes_the_processor(tmp_path: Path) -> None:
    log = run("device_query", "-gpu", "all", cwd=tmp_path)
    threads = re.search(r"Compute threads: +(\d+)", log)
    assert threads is not None
    assert int(threads[1]) > 0
    assert "Querying GPUs all" in log
    assert 'no device "99"' in run("device_query", "-gpu=99", cwd=tmp_path, status=1)


def test_fields_that_an_old_net_loses_are_reported_once(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(
        """input: "x" input_dim: 1 input_dim: 3 input_dim: 4 input_dim: 4
        layers { layer { name: "r" type: "relu" num_output: 3 } bottom: "x" top: "r" }"""
    )
    log = run("time", "-model", "net.prototxt", "-iterations", "1", cwd=tmp_path)
    assert log.count("a V0 layer of type relu does not use field num_output") == 1


def test_upgrades_a_nets_text(tmp_path: Path) -> None:
    (tmp_path / "old.prototxt").write_text(OLD_NET)
    log = messages(run("upgrade_net_proto_text", "old.prototxt", "new.prototxt", cwd=tmp_path))
    assert log == ["Wrote upgraded NetParameter text proto to new.prototxt"]

    def net(text: str) -> dict[str, object]:
        return parse_prototxt(text, "net", "NetParameter")

    assert net((tmp_path / "new.prototxt").read_text()) == net(NEW_NET)
    log = run("upgrade_net_proto_text", "new.prototxt", "again.prototxt", cwd=tmp_path)
    assert "File already in latest proto format: new.prototxt" in log
    assert (tmp_path / "again.prototxt").read_text() == (tmp_path / "new.prototxt").read_text()


def test_a_file_size_limit_is_an_error_of_the_write(tmp_path: Path) -> None:
    (tmp_path / "old.prototxt").write_text(f'name: "{"x" * 10000}"')
    done = subprocess.run(
        [str(native.program()), "upgrade_net_proto_text", "old.prototxt", "new.prototxt"],
        cwd=tmp_path,
        env=native.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    assert done.returncode == 1, done.stderr  # it was not killed by SIGXFSZ
    assert "new.prototxt" in done.stderr
    assert not (tmp_path / "new.prototxt").exists()


def test_upgrades_a_solvers_text(tmp_path: Path) -> None:
    (tmp_path / "old.prototxt").write_text("solver_type: NESTEROV base_lr: 0.5")
    run("upgrade_solver_proto_text", "old.prototxt", "new.prototxt", cwd=tmp_path)
    text = (tmp_path / "new.prototxt").read_text()
    expected = {"type": "Nesterov", "base_lr": 0.5}
    assert parse_prototxt(text, "solver", "SolverParameter") == expected


def old_model(name: str, weights: list[float]) -> bytes:
    """A V1 .caffemodel: one INNER_PRODUCT layer with a 2 x 3 weight and a bias of legacy shape."""

    def field(number: int, payload: bytes) -> bytes:
        return bytes([number << 3 | 2, len(payload)]) + payload

    def blob(num: int, width: int, values: list[float]) -> bytes:
        shape = bytes([1 << 3, 1, 2 << 3, 1, 3 << 3, num, 4 << 3, width])
        return field(6, shape + field(5, struct.pack(f"<{len(values)}f", *values)))

    layer = field(4, name.encode()) + bytes([5 << 3, 14])  # type: INNER_PRODUCT
    return field(2, layer + blob(2, 3, weights) + blob(1, 2, [1.0, 1.0]))


def test_upgrades_weights_and_reads_them_old_and_new_alike(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "old.caffemodel").write_bytes(old_model("ip", [0.5] * 3 + [1.0] * 3))
    run("upgrade_net_proto_binary", "old.caffemodel", "new.caffemodel", cwd=tmp_path)
    old, new = ((tmp_path / f"{name}.caffemodel").read_bytes() for name in ("old", "new"))
    assert old != new
    assert b"InnerProduct" in new
    for model in ("old.caffemodel", "new.caffemodel"):
        flags = ["-model", "net.prototxt", "-weights", model, "-iterations", "1"]
        # y = (2.5, 4) and t = 2: the loss is half the squared distance.
        assert "Batch 0, loss = 2.125" in messages(run("test", *flags, cwd=tmp_path))


# A fake of the CUDA driver's library: two devices; attribute n has the value 1000 + n.
FAKE_DRIVER = r"""
#include <stdio.h>
int cuInit(unsigned flags) { return 0; }
int cuDeviceGetCount(int* count) { return *count = 2, 0; }
int cuDeviceGet(int* device, int id) { return *device = 40 + id, 0; }
int cuDeviceGetName(char* name, int size, int device) {
  return snprintf(name, size, "Device %d", device), 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) { return *bytes = 8000000000u, 0; }
int cuDeviceGetAttribute(int* value, int which, int device) { return *value = 1000 + which, 0; }
"""


def test_device_query_asks_the_cuda_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "driver.c").write_text(FAKE_DRIVER)
    library = str(tmp_path / "libcuda.so.1")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "driver.c"], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    log = run("device_query", "-gpu", "1", cwd=tmp_path)
    for what, value in {
        "Device id": "1",
        "Major revision number": "1075",
        "Name": "Device 41",
        "Total global memory": "8000000000",
        "Maximum dimension of block": "1002, 1003, 1004",
        "Concurrent copy and execution": "Yes",
        "Number of multiprocessors": "1016",
    }.items():
        assert re.search(rf"{what}: +{value}\n", log), what
    assert "Device 40" not in log
    assert "Device 40" in run("device_query", cwd=tmp_path)


def test_a_program_without_its_engine_is_one_line(tmp_path: Path) -> None:
    program = shutil.copy(native.program(), tmp_path)
    done = subprocess.run([program, "device_query"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done
    assert "the module _caffe next to the program" in done.stderr, done
