"""Runs the commands of docs/finetuning.md verbatim, starting from a model in Caffe's old format."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from google.protobuf import text_format

PAGE = (ROOT / "docs" / "finetuning.md").read_text()
BLOCKS = re.findall(r"(?ms)^```(\w+) ?(\S*)\n(.*?)^```$", PAGE)


def blocks(kind):
    return [(name, text) for language, name, text in BLOCKS if language == kind]


def as_published(model):
    """The model in the form of the Model Zoo's files: V1 layers, blobs with four dimensions."""
    from caffe.proto import caffe_pb2

    today, old = caffe_pb2.NetParameter(), caffe_pb2.NetParameter(name="Published")
    today.ParseFromString(Path(model).read_bytes())
    kinds = {"Convolution": "CONVOLUTION", "InnerProduct": "INNER_PRODUCT"}
    for layer in today.layer:
        if layer.type not in kinds:
            continue
        text = f"name: '{layer.name}' type: {kinds[layer.type]}"
        target = old.layers.add()
        text_format.Parse(text, target)
        for blob in layer.blobs:
            sizes = [1] * (4 - len(blob.shape.dim)) + list(blob.shape.dim)
            fields = dict(zip(("num", "channels", "height", "width"), sizes, strict=True))
            target.blobs.add(data=blob.data, **fields)
    return old.SerializeToString()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, digits, trained):
    """A folder with the files that the page assumes, and those that it lists."""
    folder = tmp_path_factory.mktemp("finetuning")
    model = trained.modelPath.removeprefix("file:")
    (folder / "published.caffemodel").write_bytes(as_published(model))
    (folder / "images").mkdir()
    for split in ("train", "test"):
        table = pq.read_table(digits.table("png", split))
        odd = pa.array(np.asarray(table["label"]) % 2, pa.int32())
        columns = {"id": table["id"], "label": odd, "data": table["image"]}
        pq.write_table(pa.table(columns), folder / "images" / f"{split}.parquet")
    for name, text in blocks("prototxt"):
        (folder / name).write_text(text)
    return folder


def first_weights(path):
    import caffe

    net = caffe.Net(str(path.parent / "finetune.prototxt"), str(path), caffe.TEST)
    return net.params["conv1"][0].data.copy()


@pytest.mark.timeout(400)
def test_the_commands_run_and_keep_the_learned_weights(folder, trained):
    ((_, text),) = blocks("sh")
    python = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{python}:{os.environ['PATH']}"}
    command = ["sh", "-ec", text]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=350
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Finetuning from" in done.stderr and "Ignoring source layer ip2" in done.stderr
    means = dict(line.split(": ") for line in (folder / "means.txt").read_text().splitlines())
    assert float(means["accuracy"]) > 0.93
    import caffe

    old = caffe.Net(trained.net_file, trained.modelPath.removeprefix("file:"), caffe.TEST)
    kept = first_weights(folder / "odd_or_even.caffemodel")
    np.testing.assert_array_equal(kept, old.params["conv1"][0].data)


@pytest.mark.timeout(400)
def test_the_python_lines_run_on_a_data_frame(folder, spark, monkeypatch):
    ((_, text),) = blocks("python")
    monkeypatch.chdir(folder)
    names = {"spark": spark}
    exec(compile(text, "docs/finetuning.md", "exec"), names)
    assert names["accuracy"] > 0.93
    assert names["answers"].columns == ["SampleID", "odd_or_even", "label"]
    assert names["answers"].count() == pq.read_metadata(folder / "images/test.parquet").num_rows
