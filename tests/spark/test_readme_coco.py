"""Runs the command lines of CaffeOnSpark's README for COCO: two images, captions of 20 words, an
LRCN of 21 steps.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT
from PIL import Image

EXAMPLE = ROOT / "examples" / "captions"
STEPS = 21
CAPTIONS = ("A blue wall.", "A red wall, and a green one.")


def write_images(folder):
    """Writes two images and their captions in COCO's format."""
    images, notes = [], []
    for number, text in enumerate(CAPTIONS):
        name = f"COCO_{number}.jpg"
        Image.new("RGB", (32, 32), (200 * number, 0, 90)).save(folder / name)
        images.append({"id": number, "file_name": name, "height": 32, "width": 32})
        notes.append({"id": 10 + number, "image_id": number, "caption": text})
    (folder / "coco.json").write_text(json.dumps({"images": images, "annotations": notes}))


def write_net(folder, words):
    """Writes the example's LRCN for sentences of 21 words, reading the converter's rows."""
    net = (EXAMPLE / "lrcn.prototxt").read_text()
    net = re.sub(r"file:work/coco/\w+-rows", f"file:{folder}/out/embedded", net)
    net = re.sub(r"batch_size: \d+", "batch_size: 2", net)
    net = net.replace("INT_ARRAY channels: 10", f"INT_ARRAY channels: {STEPS}")
    net = re.sub(r"(input_dim|num_output): 14\b", rf"\1: {words}", net)
    (folder / "lrcn.prototxt").write_text(net)
    solver = (EXAMPLE / "lrcn_solver.prototxt").read_text()
    (folder / "solver.prototxt").write_text(solver.replace("max_iter: 300", "max_iter: 60"))


def run(*command):
    local = ["--master", "local[2]"]
    done = subprocess.run(
        [sys.executable, "-m", *command, *local], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.long
def test_a_net_of_21_steps_learns_captions_of_20_words(tmp_path):
    write_images(tmp_path)
    out = f"file:{tmp_path}/out"
    folders = ("-vocabDir", "words", "-embeddingDFDir", "embedded", "-output", out)
    said = run(
        "hearth.cli", "CocoDataSetConverter", "-captionFile", f"file:{tmp_path}/coco.json",
        "-imageRoot", f"file:{tmp_path}", "-imageCaptionDFDir", "captions", *folders,
    )  # fmt: skip
    words = int(re.search(r"2 captions with (\d+) words", said)[1])
    write_net(tmp_path, words + 1)
    said = run(
        "hearth.caffeonspark", "-train", "-conf", str(tmp_path / "solver.prototxt"),
        "-model", f"file:{tmp_path}/lrcn.caffemodel", "-features", "fc8,predict",
        "-clusterSize", "1", "-output", f"file:{tmp_path}/features", "-outputFormat", "json",
    )  # fmt: skip
    assert "has 20 values, fewer than the 21 of its top: shorter rows are padded" in said
    rows = [
        json.loads(line)
        for part in sorted((tmp_path / "features").glob("part-*"))
        for line in part.read_text().splitlines()
    ]
    assert sorted(row["SampleID"] for row in rows) == ["10", "11"]
    assert {len(row["predict"]) for row in rows} == {STEPS * (words + 1)}
    shutil.rmtree(tmp_path / "out" / "captions")
    run("hearth.cli", "Embedding2Caption", "-imageCaptionDFDir", "captions", *folders)
    text = "".join(part.read_text() for part in (tmp_path / "out" / "captions").glob("part-*"))
    assert "a red wall , and a green one" in text and "a blue wall" in text
