"""The GPU library is loaded when a device is first used; everything else runs without torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hearth import native
from hearth.tools import build_device

ROOT = Path(__file__).resolve().parents[2]
NET = """
layer { name: "data" type: "DummyData" top: "data" dummy_data_param { shape { dim: 2 dim: 3 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
        inner_product_param { num_output: 2 } }
"""


@pytest.fixture
def time_net(tmp_path):
    """Returns a function that runs `hearth time` for a small net with given variables."""
    (tmp_path / "net.prototxt").write_text(NET)

    def run(*flags: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command = [native.program(), "time", f"--model={tmp_path}/net.prototxt", "--iterations=1"]
        return subprocess.run(
            [*command, *flags], capture_output=True, text=True,
            env={**native.environment(), **variables},
        )  # fmt: skip

    return run


def test_a_missing_library_is_an_error_with_the_remedy(time_net):
    done = time_net("--gpu=0", HEARTH_SIMULATED_GPUS="1", HEARTH_DEVICE_LIBRARY="/nowhere/x.so")
    assert done.returncode != 0
    assert "/nowhere/x.so" in done.stderr
    assert "pip install torch" in done.stderr and "hearth build-device" in done.stderr


def test_an_invalid_device_library_is_refused(time_net):
    other = next(native.DIRECTORY.glob("libhearth_feed.so"))
    done = time_net("--gpu=0", HEARTH_SIMULATED_GPUS="1", HEARTH_DEVICE_LIBRARY=str(other))
    assert done.returncode != 0 and "hearth build-device" in done.stderr


def test_nets_compute_on_the_cpu_without_it(time_net):
    done = time_net(HEARTH_DEVICE_LIBRARY="/nowhere/x.so")
    assert done.returncode == 0, done.stderr


def test_the_engine_loads_no_torch():
    program = (
        "import hearth.caffe, sys\n"
        "hearth.caffe.Net(sys.argv[1], hearth.caffe.TEST).forward()\n"
        "assert 'torch' not in sys.modules\n"
        "assert 'libtorch' not in open('/proc/self/maps').read()"
    )
    net = ROOT / "examples/nets/lenet.prototxt"
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    subprocess.run([sys.executable, "-c", program, str(net)], check=True, env=variables)


def test_building_it_without_a_compiler_names_the_package_to_install(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert build_device.main(["--output", str(tmp_path)]) == 1
    assert "no C++ compiler no-such-compiler found: install g++" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_building_it_without_torch_names_the_package_to_install(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(native, "torch_libraries", lambda: None)
    assert build_device.main(["--output", str(tmp_path)]) == 1
    assert "pip install torch" in capsys.readouterr().err
