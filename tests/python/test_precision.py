"""LeNet on handwritten digits learns in bfloat16, and is tested in int8, as well as in float32."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from program import messages, run
from sklearn.datasets import load_digits

from hearth import HearthError
from hearth.native import _caffe

pytestmark = pytest.mark.slow

NET = (Path(__file__).parents[2] / "examples" / "nets" / "lenet.prototxt").read_text()
SOLVER = 'base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: "fixed" random_seed: 7 '
BATCH = 64


def digits() -> tuple[np.ndarray, np.ndarray]:
    """The digits scaled to 28 x 28, with values in [0, 1], in random order, and their labels."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images = np.kron(data.images / 16, np.ones((3, 3)))
    return np.pad(images, ((0, 0), (2, 2), (2, 2)))[order, None], data.target[order]


def trained(precision: str, iterations: int = 250) -> _caffe.Solver:
    """A solver that has learned two thirds of the digits."""
    images, labels = digits()
    split = len(labels) * 2 // 3
    random = np.random.default_rng(1)

    def place(net: _caffe.Net) -> None:
        rows = random.integers(0, split, BATCH)
        net.blobs["data"].data[...] = images[rows]
        net.blobs["label"].data[...] = labels[rows]

    solver = _caffe.Solver(
        f"{SOLVER} display: 0 max_iter: {iterations} net_param {{ {NET} }}",
        before_forward=place,
        precision=precision,
    )
    solver.step(iterations)
    return solver


def accuracy(net: _caffe.Net) -> float:
    """The fraction of the remaining digits that the net recognizes."""
    images, labels = digits()
    right, split = 0, len(labels) * 2 // 3
    held_out = np.arange(split, len(labels))
    for start in range(0, len(held_out), BATCH):
        rows = np.resize(held_out[start:], BATCH)
        net.blobs["data"].data[...] = images[rows]
        net.blobs["label"].data[...] = labels[rows]
        net.forward()
        guesses = net.blobs["ip2"].data.argmax(axis=1)
        counted = min(BATCH, len(held_out) - start)
        right += int((guesses == labels[rows])[:counted].sum())
    return right / len(held_out)


def write_test_net(folder: Path) -> str:
    """Writes the remaining digits as image files, and a LeNet that reads them; returns its name."""
    images, labels = digits()
    rows = range(len(labels) * 2 // 3, len(labels))
    for row in rows:
        pixels = np.round(images[row, 0] * 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{row}.png")
    (folder / "list.txt").write_text("".join(f"{row}.png {labels[row]}\n" for row in rows))
    data = f"""layer {{ name: "data" type: "ImageData" top: "data" top: "label"
      image_data_param {{ source: "list.txt" batch_size: {len(rows)} is_color: false }}
      transform_param {{ scale: {1 / 255} }} }}"""
    layers = NET.split("\nlayer {")
    (folder / "net.prototxt").write_text("\nlayer {".join([data, *layers[3:]]))
    return "net.prototxt"


def difference_of(output: str, log: list[str]) -> list[float]:
    """The float32 and int8 values that `hearth test` reports, and their difference."""
    pattern = rf"{output}: float32 (\S+), int8 (\S+), difference (\S+)"
    (found,) = [match for line in log if (match := re.fullmatch(pattern, line))]
    return list(map(float, found.groups()))


def test_bfloat16_costs_less_than_half_a_point_of_accuracy_or_is_refused_without_avx512():
    if "avx512bw" not in Path("/proc/cpuinfo").read_text():
        with pytest.raises(HearthError, match=r"'conv1'.*oneDNN supports no bfloat16"):
            trained("bf16", 1)
        return
    exact, rounded = trained("float32").net, trained("bf16").net
    assert accuracy(exact) >= 0.97
    assert accuracy(rounded) >= accuracy(exact) - 0.005
    weights = [net.params["conv1"][0].data for net in (exact, rounded)]
    assert not np.array_equal(*weights), "nothing was rounded"


def test_int8_costs_less_than_half_a_point_of_accuracy_and_the_program_reports_it(tmp_path: Path):
    solver = trained("float32")
    model = str(tmp_path / "digits.caffemodel")
    solver.net.save(model)
    int8 = _caffe.Net.for_inference(NET, "int8")
    int8.copy_from(model)
    exact = accuracy(solver.net)
    assert exact >= 0.97
    assert accuracy(int8) >= exact - 0.005

    flags = ["-model", write_test_net(tmp_path), "-weights", model, "-iterations", "1"]
    log = messages(run("test", *flags, "-precision", "int8", cwd=tmp_path))
    assert "int8 compared with float32 on the same 1 batches:" in log
    float32, rounded, difference = difference_of("accuracy", log)
    assert float32 == pytest.approx(exact, abs=0.005)
    assert difference == pytest.approx(rounded - float32, abs=1e-5)
    assert abs(difference) <= 0.005
    assert difference_of("loss", log)[2] != 0, "nothing was rounded"
    assert not any("compared with" in line for line in messages(run("test", *flags, cwd=tmp_path)))


def test_int8_is_float32_where_onednn_finds_no_vnni_and_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    model = str(tmp_path / "digits.caffemodel")
    _caffe.Net(NET, "TEST").save(model)
    flags = ["-model", write_test_net(tmp_path), "-weights", model, "-iterations", "1"]
    log = messages(run("test", *flags, "-precision", "int8", cwd=tmp_path))
    assert sum("int8 is computed in float32" in line for line in log) == 1
    assert difference_of("loss", log)[2] == 0


def test_training_in_int8_is_refused():
    with pytest.raises(HearthError, match=r"int8 is for tests and features of trained nets"):
        trained("int8", 1)


def test_a_precision_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="float32, bf16 or int8, not 'half'"):
        _caffe.Solver(f"{SOLVER} net_param {{ {NET} }}", precision="half")
