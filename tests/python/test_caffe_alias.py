"""Programs that `import caffe` find pycaffe's functions under pycaffe's names."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hearth.caffe import alias

PROGRAM = """
import caffe
import caffe.io
import caffe.draw
from caffe import layers as L, params as P
from caffe.classifier import Classifier
from caffe.coord_map import crop
from caffe.detector import Detector
from caffe.net_spec import NetSpec
from caffe.pycaffe import Net, SGDSolver, TEST
from caffe.io import Transformer
import caffe._caffe
import hearth.caffe
assert Net is caffe.Net is hearth.caffe.Net
assert NetSpec is caffe.NetSpec and L is caffe.layers and P is caffe.params
assert Transformer is caffe.io.Transformer is hearth.caffe.io.Transformer
import sys
for part in ("classifier", "coord_map", "detector", "draw", "io", "net_spec"):
    ours = sys.modules["hearth.caffe." + part]
    assert ours is sys.modules["caffe." + part] is getattr(caffe, part), part
assert Classifier is caffe.Classifier and Detector is caffe.Detector
assert caffe.TRAIN == 0 and caffe.TEST == TEST == 1
assert caffe.coord_map.crop is crop
assert caffe._caffe.Net
assert int(caffe.__version__.split(".")[0]) >= 1
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, timeout=60, env={**os.environ, **environment},
    )  # fmt: skip


def test_the_names_of_pycaffe_are_there() -> None:
    done = run(PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_message_classes_are_the_same_under_both_names() -> None:
    pytest.importorskip("google.protobuf")
    done = run(
        "import caffe\n"
        "from caffe.proto import caffe_pb2\n"
        "import caffe.proto.caffe_pb2 as again\n"
        "import hearth.caffe.proto.caffe_pb2 as ours\n"
        "assert caffe_pb2.NetParameter is again.NetParameter is ours.NetParameter\n"
        "assert caffe.proto.caffe_pb2.NetParameter is ours.NetParameter\n"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["caffe.io", "caffe.draw"])
def test_programs_reach_the_messages_through_other_modules(module: str) -> None:
    pytest.importorskip("google.protobuf")
    done = run(f"import {module}; print({module}.caffe_pb2.BlobProto(num=3))")
    assert (done.returncode, done.stdout) == (0, "num: 3\n\n"), done.stderr
    assert "no attribute 'caffe_pb3'" in run(f"import {module}; {module}.caffe_pb3").stderr


def test_importing_caffe_loads_neither_torchs_python_nor_protobuf() -> None:
    done = run("import caffe, sys; print(*sorted(sys.modules))")
    modules = done.stdout.split()
    assert "hearth.caffe" in modules
    assert not {"torch", "google.protobuf", "PIL", "scipy"} & set(modules)


def test_a_missing_engine_is_reported_in_one_sentence() -> None:
    done = run("import sys; sys.modules['hearth.native._caffe'] = None; import caffe")
    assert done.returncode != 0
    assert "ImportError: hearth.caffe needs the compiled engine: pip install" in done.stderr


def test_modes_ranks_and_timer() -> None:
    from hearth import caffe
    from hearth.native import _caffe

    caffe.set_mode_cpu()
    if _caffe.count_gpus() == 0:
        with pytest.warns(UserWarning, match="compute on the CPU"):
            caffe.set_mode_gpu()
    caffe.set_device(0)
    with pytest.raises(ValueError, match="-1"):
        caffe.set_device(-1)
    assert caffe.solver_count() == 1
    assert caffe.solver_rank() == 0
    assert not caffe.has_nccl()
    with pytest.raises(NotImplementedError, match="caffeonspark"):
        caffe.NCCL(None, "")
    assert {"Convolution", "Python", "SoftmaxWithLoss"} <= set(caffe.layer_type_list())
    timer = caffe.Timer()
    timer.start()
    sum(range(100_000))
    timer.stop()
    assert 0 < timer.ms == timer.ms < 10_000


NET_OF_TWO = """
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
  inner_product_param { num_output: 1 } }
"""


def test_in_gpu_mode_nets_compute_on_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hearth import caffe

    (tmp_path / "net.prototxt").write_text(NET_OF_TWO)
    monkeypatch.setenv("HEARTH_SIMULATED_GPUS", "2")
    caffe.set_device(1)
    caffe.set_mode_gpu()
    try:
        net = caffe.Net(str(tmp_path / "net.prototxt"), caffe.TEST)
        with pytest.raises(ValueError, match="no CUDA device 2"):
            caffe.set_device(2)
    finally:
        caffe.set_mode_cpu()
        caffe.set_device(0)
    net.params["ip"][0].data[...] = 2
    for value in (1, 3):  # data changed after a pass is copied to the device again
        net.blobs["x"].data[...] = value
        assert net.forward()["y"] == 2 * 2 * value


def test_the_log_can_be_silenced() -> None:
    code = "import caffe; caffe.log('said'); caffe.init_log(2); caffe.log('not said')"
    done = run(code)
    assert "said" in done.stderr
    assert "not said" not in done.stderr
    assert run("import caffe; caffe.log('said')", GLOG_minloglevel="1").stderr == ""
    assert "said" in run("import caffe; caffe.init_log(0, True); caffe.log('said')").stderr
    assert run("import caffe; caffe.init_log(0, False); caffe.log('said')").stderr == ""


def test_another_caffe_in_the_same_folder_is_warned_of(tmp_path: Path) -> None:
    ours = Path(alias.__file__).parents[2] / "caffe"
    assert {path.name for path in ours.iterdir()} - {"__pycache__"} == alias.OUR_FILES
    shutil.copytree(ours, tmp_path / "caffe")
    assert "another package" not in run("import caffe", PYTHONPATH=str(tmp_path)).stderr
    (tmp_path / "caffe" / "test_net.py").touch()
    done = run("import caffe", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert f"another package named caffe is installed in {tmp_path}/caffe (it has test_net.py)" in (
        done.stderr
    )


@pytest.mark.parametrize("file", ["__init__.py", "io.py"])  # installed later; left after removal
def test_another_caffe_that_is_found_is_warned_of(file: str, tmp_path: Path) -> None:
    (tmp_path / "caffe").mkdir()
    (tmp_path / "caffe" / file).write_text("from .pycaffe import Net")
    done = run("import hearth.caffe", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    if file == "__init__.py":
        assert f"`import caffe` finds another package, {tmp_path}/caffe/__init__.py" in done.stderr
    else:  # a folder without __init__.py does not shadow hearth's
        assert done.stderr == ""
