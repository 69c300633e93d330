"""Invalid input is reported in one line: what failed, where, and what to do.

Other files test CaffeOnSpark's command (test_command_errors.py), rows
(test_caffe_invalid_rows.py) and cases that need Spark (tests/spark/test_invalid_records.py).
"""

from __future__ import annotations

import random
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest
from program import NET, start, write_solver

from hearth import native
from hearth.native import _core as core

MOST_SECONDS = 10
EXAMPLE = Path(__file__).resolve().parents[2] / "python" / "hearth" / "demo"
WEIGHTS = Path(__file__).resolve().parents[1] / "data" / "golden" / "files" / "net.caffemodel"
TRAIN = ("train", "-solver", "solver.prototxt")


def run(folder: Path, *arguments: str) -> str:
    """Runs the program, which must fail in time; returns its last line, the only error line."""
    begin = time.monotonic()
    process = subprocess.run(
        [str(native.program()), *arguments],
        cwd=folder,
        env=native.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode == 1, process.stdout + process.stderr
    assert time.monotonic() - begin < MOST_SECONDS
    assert "terminate called" not in process.stderr
    said = [line for line in process.stderr.splitlines() if line.startswith("hearth: ")]
    assert len(said) == 1, process.stderr
    assert process.stderr.splitlines()[-1] == said[0]
    return said[0].removeprefix("hearth: ")


def data_layer(kind: str, parameter: str) -> str:
    return f'layer {{ name: "d" type: "{kind}" top: "x" top: "t" {parameter} }}\n'


IMAGES = data_layer("ImageData", 'image_data_param { source: "l" batch_size: 2 }')
LOSS = NET[NET.index('layer { name: "ip"') :]

# Files that replace the valid net and solver, the command, and the expected error.
FILES = {
    "missing solver": ({}, ("train", "-solver", "gone.prototxt"), r"cannot open gone\.protot"),
    "missing net": ({"net.prototxt": None}, TRAIN, r"cannot open net\.prototxt: No such file"),
    "missing weights": ({}, (*TRAIN, "-weights", "w.caffemodel"), r"cannot open w\.caffemodel"),
    "missing snapshot": ({}, (*TRAIN, "-snapshot", "s.solverstate"), r"cannot open s\.solverst"),
    "missing model": ({}, ("test", "-model", "m.prototxt", "-weights", "w"), r"cannot open m\.p"),
    "missing image list": ({}, ("convert_imageset", "./", "list", "db"), r"cannot open list"),
    "missing database": (
        {"net.prototxt": data_layer("Data", 'data_param { source: "db" batch_size: 2 }') + LOSS},
        TRAIN,
        r"layer 'd' \(Data\), setting up: there is no database db",
    ),
    "unreadable file": ({}, ("train", "-solver", "/proc/self/mem"), r"cannot read /proc/self/mem"),
    "a folder as file": ({}, ("train", "-solver", "."), r"cannot read \.: Is a directory"),
    "empty solver": ({"solver.prototxt": ""}, TRAIN, r"solver\.prototxt is empty; give the"),
    "empty net": ({"net.prototxt": "\n"}, TRAIN, r"net\.prototxt is empty; give the prototxt"),
    "empty weights": (
        {"w.caffemodel": ""},
        (*TRAIN, "-weights", "w.caffemodel"),
        r"w\.caffemodel is empty; give a file of trained weights",
    ),
    "empty HDF5 weights": (
        {"w.caffemodel.h5": ""},
        (*TRAIN, "-weights", "w.caffemodel.h5"),
        r"cannot read w\.caffemodel\.h5 as an HDF5 file",
    ),
    "empty snapshot": (
        {"s.solverstate": ""},
        (*TRAIN, "-snapshot", "s.solverstate"),
        r"s\.solverstate is not a readable solver state",
    ),
    "text as weights": (
        {},
        (*TRAIN, "-weights", "net.prototxt"),
        r"net\.prototxt: damaged at byte 1 of \d+",
    ),
    "an empty image list": (
        {"l": "", "net.prototxt": IMAGES},
        TRAIN,
        r"layer 'd' \(ImageData\), setting up: the list l has no images",
    ),
    "a first image that cannot be decoded": (
        {
            "l": "a.png 1\n",
            "a.png": "xx",
            "net.prototxt": IMAGES,
        },
        TRAIN,
        r"layer 'd' \(ImageData\), setting up: a\.png: 2 bytes that begin with \[78 78\]",
    ),
    "an image without label": (
        {"l": "a.png\n"},
        ("convert_imageset", "./", "l", "db"),
        r"l:1: 'a\.png' does not end in an integer label",
    ),
    "no readable image": (
        {"l": "a.png 1\n"},
        ("convert_imageset", "./", "l", "db"),
        r"none of the 1 images of l can be read",
    ),
    "weights of another net": (
        {"w.caffemodel": WEIGHTS.read_bytes()},
        (*TRAIN, "-weights", "w.caffemodel"),
        r"weights w\.caffemodel: the weights are of another net: they are for layers .*, "
        r"but this net has ip; give the right file, or rename layers",
    ),
    "no folder for snapshots": (
        {},
        TRAIN,
        r"cannot write snapshots to no/folder/s_iter_\*; create the folder.*No such file",
        'snapshot: 5 snapshot_prefix: "no/folder/s"',
    ),
    "a layer in Python": (
        {"net.prototxt": NET + 'layer { name: "p" type: "Python" top: "q" }'},
        TRAIN,
        r"layer 'p'.*python_param must name a module and, as layer, a class of it",
    ),
}  # fmt: skip

# Errors in the net or solver.
TEXTS = {
    "unknown field": ("base_lrr: 1", NET, r"solver\.prototxt:\d+:1: .*did you mean base_lr\?"),
    "wrong type": ('max_iter: "ten"', NET, r"solver\.prototxt:\d+:11: found \"ten\""),
    "negative size": ("", NET.replace("num_output: 2", "num_output: -2"), r"net\.prototxt:\d+:\d"),
    "zero size": ("", NET.replace("num_output: 2", "num_output: 0"), r"layer 'ip' .*num_output"),
    "too large": (
        "",
        NET.replace("num_output: 2", "num_output: 4000000000"),
        r"layer 'ip' \(InnerProduct\), setting up: a blob of shape \[4000000000, \d+\] is larger "
        r"than the limit of 2147483647 values",
    ),
    "wrong shape": (
        "",
        NET.replace("dim: 4 dim: 2", "dim: 5 dim: 2"),
        r"layer 'loss' \(EuclideanLoss\), setting up: .*4 2 \(8\) and 5 2 \(10\)",
    ),
    "unknown layer": ("", NET.replace("InnerProduct", "InnerProdukt"), r"did you mean Inner"),
    "unknown blob": ("", NET.replace('bottom: "y"', 'bottom: "z"'), r"no earlier layer has"),
    "unknown policy": ('lr_policy: "slow"', NET, r"lr_policy"),
}


def check_nothing_new(folder: Path, before: set[str]) -> None:
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.parametrize("case", FILES)
def test_a_wrong_file_is_named(case: str, tmp_path: Path) -> None:
    files, arguments, said, *more = FILES[case]
    write_solver(tmp_path, *more)
    for name, content in files.items():
        path = tmp_path / name
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = {path.name for path in tmp_path.iterdir()}
    assert re.match(said, run(tmp_path, *arguments))
    check_nothing_new(tmp_path, before)


@pytest.mark.parametrize("case", TEXTS)
def test_an_error_in_a_net_or_solver_names_its_position(case: str, tmp_path: Path) -> None:
    more, net, said = TEXTS[case]
    write_solver(tmp_path, more, net)
    before = {path.name for path in tmp_path.iterdir()}
    assert re.search(said, run(tmp_path, *TRAIN))
    check_nothing_new(tmp_path, before)


def test_an_error_in_a_truncated_prototxt_names_its_position() -> None:
    for name, message in (("train_test", "NetParameter"), ("solver", "SolverParameter")):
        text = (EXAMPLE / f"lenet_cos_{name}.prototxt").read_text()
        refused = 0
        cuts = random.Random(5).choices(range(len(text)), k=200)
        for cut in cuts:
            try:  # text cut between two fields is valid
                core.parse_prototxt(text[:cut], "cut.prototxt", message)
            except ValueError as error:
                refused += 1
                assert re.match(r"cut\.prototxt:\d+:\d+: found ", str(error))
                assert "\n" not in str(error)
        assert refused > (150 if message == "NetParameter" else 80)


def test_the_program_refuses_a_prototxt_that_is_cut_off(tmp_path: Path) -> None:
    write_solver(tmp_path)
    for cut in (20, 90, 200, 300, len(NET) - 3):
        (tmp_path / "net.prototxt").write_text(NET[:cut])
        assert re.match(r"net\.prototxt:\d+:\d+: found ", run(tmp_path, *TRAIN))
        check_nothing_new(tmp_path, {"net.prototxt", "solver.prototxt"})


def test_a_full_disk_leaves_no_file_of_a_snapshot(tmp_path: Path) -> None:
    solver = write_solver(tmp_path, "max_iter: 100000000 display: 1000")
    process = start("train", "-solver", solver, cwd=tmp_path)
    assert process.stderr is not None
    while "Iteration 1000 " not in process.stderr.readline():
        assert process.poll() is None
    # Set only after the start, because it would also limit the shared memory that is created there.
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100, 100))
    process.send_signal(signal.SIGINT)  # ends it after a snapshot
    said = process.communicate(timeout=60)[1].splitlines()[-1]
    assert process.returncode == 1
    where = r"hearth: iteration (\d+): "
    assert re.match(rf"{where}cannot write snap_iter_\1\.caffemodel: File too large", said), said
    check_nothing_new(tmp_path, {"net.prototxt", "solver.prototxt"})


def test_a_full_device_is_an_error(tmp_path: Path) -> None:
    write_solver(tmp_path)
    (tmp_path / "old.prototxt").write_text(NET)
    arguments = ("upgrade_net_proto_text", "old.prototxt", "/dev/full/new.prototxt")
    said = run(tmp_path, *arguments)
    assert re.match(r"cannot create /dev/full/new\.prototxt: Not a directory", said)


def test_a_port_that_is_taken_is_named() -> None:
    first = core.Coordinator(world=1, token=core.new_token(), generation=0, bind_host="127.0.0.1")
    try:
        with pytest.raises(
            ValueError, match=rf"127\.0\.0\.1:{first.port()}: Address already in use"
        ):
            core.Coordinator(
                world=1,
                token=core.new_token(),
                generation=0,
                bind_host="127.0.0.1",
                bind_port=first.port(),
            )
    finally:
        first.close()


def test_a_python_layer_that_fails_to_import_names_its_module(tmp_path: Path) -> None:
    caffe = pytest.importorskip("hearth.caffe")
    for module, layer, said in (
        ("no_such_module", "L", r"layer 'p'.*no_such_module"),
        ("json", "NoSuchLayer", r"layer 'p'.*NoSuchLayer"),
    ):
        net = tmp_path / "net.prototxt"
        net.write_text(
            'layer { name: "p" type: "Python" top: "q" '
            f'python_param {{ module: "{module}" layer: "{layer}" }} }}'
        )
        with pytest.raises(Exception, match=said) as caught:
            caffe.Net(str(net), caffe.TRAIN)
        assert "\n" not in str(caught.value)
