"""Small nets for tests of sources: the digits' pixels, one layer, ten classes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZE = 784
MEMORY = "channels: 1 height: 28 width: 28"
TOPS = """
  top { name: "image" type: RAW_IMAGE channels: 1 height: 28 width: 28 }
  top { name: "label" type: INT channels: 1 height: 1 width: 1 sample_num_axes: 0 }"""


@dataclass(frozen=True)
class SourceNet:
    """A folder for a net's prototxts and model."""

    folder: Path

    def config(self, spark: SparkSession, kind: str, source: str, **given: Any):
        """A Config whose data layer has the source_class `kind`.

        `given`: `fields` of the layer's parameter message, `layer` (its type), `iterations`,
        `batch`, and flags, which None removes.
        """
        from hearth.caffeonspark import Config

        fields, layer = given.pop("fields", MEMORY), given.pop("layer", "MemoryData")
        batch, iterations = given.pop("batch", 20), given.pop("iterations", 5)
        message = {"MemoryData": "memory_data_param", "CoSData": "cos_data_param"}[layer]
        where = f'source: "{source}" ' if source else ""
        data = (
            f'layer {{ name: "data" type: "{layer}" top: "data" top: "label" '
            f'source_class: "{kind}"\n'
            f"  {message} {{ {where}batch_size: {batch} {fields} }} }}\n"
        )
        name = re.sub(r"\W", "_", f"{kind}_{len(list(self.folder.iterdir()))}")
        (self.folder / f"{name}_net.prototxt").write_text(data + _REST)
        solver = self.folder / f"{name}_solver.prototxt"
        solver.write_text(
            f'net: "{name}_net.prototxt"\nmax_iter: {iterations}\nbase_lr: 0.0001\n'
            'lr_policy: "fixed"\nsolver_mode: CPU\nrandom_seed: 1\n'
        )
        model = f"file:{self.folder / name}.caffemodel"
        flags = {"clusterSize": "2", "features": "data,label,ip", **given}
        flags = {name: value for name, value in flags.items() if value is not None}
        return Config(spark, {"conf": str(solver), "model": model, **flags})


_REST = """
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "constant" value: 0.001 } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


def digit_rows(digits: Any, count: int) -> list[dict[str, Any]]:
    """The first `count` digits: id, label, image (784 bytes)."""
    return pq.read_table(digits.table("raw", "train")).slice(0, count).to_pylist()


def check_content(features: Any, rows: list[dict[str, Any]]) -> None:
    """Checks that every row's pixels and label arrived once."""
    found = {row.SampleID: row for row in features.collect()}
    assert sorted(found) == sorted(row["id"] for row in rows)
    for row in rows:
        assert bytes(map(int, found[row["id"]].data)) == row["image"]
        assert found[row["id"]].label == [row["label"]]


def weights_of(conf: Any) -> list[list[float]]:
    """The weights of the model that a training with `conf` wrote."""
    from hearth.caffe.proto import caffe_pb2

    net = caffe_pb2.NetParameter()
    net.ParseFromString(Path(conf.modelPath.removeprefix("file:")).read_bytes())
    return [list(blob.data) for layer in net.layer for blob in layer.blobs]
