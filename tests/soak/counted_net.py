"""A small net whose training records how often it has trained on each row.

The net counts its iterations in a parameter, so that a layer knows the iteration after any restart;
this layer records the ids of the rows. If an iteration was done more than once, only the last
generation's counts: its update is in the final model, the others were rolled back.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NET = """
name: "Counted"
layer {{
  name: "rows" type: "CoSData" top: "id" top: "x" include {{ phase: TRAIN }}
  source_class: "com.yahoo.ml.caffe.DataFrameSource"
  cos_data_param {{
    source: "{source}" dataframe_format: "parquet" batch_size: {batch}
    top {{ name: "id" type: INT channels: 1 height: 1 width: 1 sample_num_axes: 0 }}
    top {{ name: "x" type: FLOAT channels: 1 height: 1 width: 1 sample_num_axes: 0 }}
  }}
}}
# Its gradient is -1 in every iteration, of however many rows: it counts them.
layer {{
  name: "step" type: "Parameter" top: "step" param {{ lr_mult: 16 }}
  parameter_param {{ shape {{ dim: 1 }} }}
}}
layer {{ name: "steps" type: "Reduction" bottom: "step" top: "steps" loss_weight: -1 }}
layer {{
  name: "recorder" type: "Python" bottom: "id" bottom: "step"
  python_param {{ module: "row_recorder" layer: "RowRecorder" param_str: "{folder} {pace_s}" }}
}}
# The weights depend on the order of the rows.
layer {{
  name: "embed" type: "Embed" bottom: "id" top: "embed"
  embed_param {{
    input_dim: {rows} num_output: 4 weight_filler {{ type: "uniform" min: 0.5 max: 1 }}
  }}
}}
layer {{
  name: "ip" type: "InnerProduct" bottom: "embed" top: "ip"
  inner_product_param {{ num_output: 1 weight_filler {{ type: "constant" value: 0.2 }} }}
}}
layer {{
  name: "flat" type: "Reshape" bottom: "ip" top: "flat" reshape_param {{ shape {{ dim: 0 }} }}
}}
layer {{ name: "loss" type: "EuclideanLoss" bottom: "flat" bottom: "x" top: "loss" }}
"""

_SOLVER = """
net: "{folder}/net.prototxt"
base_lr: 0.0625
lr_policy: "fixed"
max_iter: {max_iter}
snapshot: {snapshot}
snapshot_prefix: "{folder}/counted"
random_seed: 5
display: 0
solver_mode: CPU
"""


@dataclass(frozen=True)
class Tally:
    """Numbers of epochs, of rows missing from an epoch, and of repeated rows in an epoch."""

    epochs: int
    lost: int
    doubled: int

    @property
    def exact(self) -> bool:
        return self.lost == self.doubled == 0


class CountedNet:
    """The files of one training, in a separate folder."""

    def __init__(self, folder: Path, rows: int, batch: int, max_iter: int, **other: Any):
        """`other`: snapshot (interval), source (Parquet files), pace_s (seconds per forward)."""
        self.folder = folder
        self.rows = rows
        folder.mkdir(parents=True)
        settings = {"snapshot": 25, "source": "file:/none", "pace_s": 0.003, **other}
        settings.update(folder=folder, rows=rows, batch=batch, max_iter=max_iter)
        (folder / "net.prototxt").write_text(_NET.format(**settings), encoding="utf-8")
        (folder / "solver.prototxt").write_text(_SOLVER.format(**settings), encoding="utf-8")
        self.begin(0)

    def begin(self, generation: int) -> None:
        """Sets the generation of the trainers that start from now on."""
        new = self.folder / "generation.new"
        new.write_text(str(generation), encoding="utf-8")
        new.replace(self.folder / "generation")

    def clear(self) -> None:
        """Deletes a training's files, before another training that must write the same model."""
        for pattern in ("????-*", "counted_iter_*", "model.caffemodel"):
            for file in self.folder.glob(pattern):
                file.unlink()
        self.begin(0)

    def config(self, spark: Any, **flags: Any) -> Any:
        from hearth.caffeonspark import Config

        solver, model = self.folder / "solver.prototxt", self.folder / "model.caffemodel"
        return Config(spark, {"conf": str(solver), "model": f"file:{model}", **flags})

    def progress(self, generation: int) -> dict[str, int]:
        """The iteration that each recorder of a generation has reached."""
        last = {}
        for file in self.folder.glob(f"{generation:04d}-*"):
            lines = file.read_bytes()[-65536:].split(b"\n")
            if len(lines) > 1:
                last[file.name] = int(lines[-2].split()[0]) if lines[-2] else 0
        return last

    def learned(self) -> list[list[int]]:
        """The ids of each iteration, as far as they are in the final model."""
        return [ids for part in self.learned_by_run() for ids in part]

    def learned_by_run(self) -> list[list[list[int]]]:
        """The same, in one list for each generation whose iterations count."""
        by_iteration: dict[int, tuple[int, list[int]]] = {}
        for file in sorted(self.folder.glob("????-*")):
            generation = int(file.name[:4])
            for line in file.read_text(encoding="ascii").split("\n")[:-1]:
                iteration, *ids = map(int, line.split())
                of, all_ids = by_iteration.get(iteration, (-1, []))
                by_iteration[iteration] = (
                    (of, all_ids + ids) if of == generation else (generation, ids)
                )
        counted = [by_iteration[i] for i in sorted(by_iteration)]
        runs = itertools.groupby(counted, key=lambda entry: entry[0])
        return [[ids for _, ids in run] for _, run in runs]

    def tally(self) -> Tally:
        return tally(self.learned(), self.rows)


def tally(iterations: list[list[int]], rows: int) -> Tally:
    """Counts per epoch; an epoch ends after `rows` rows."""
    epochs = lost = doubled = 0
    seen: Counter[int] = Counter()
    for ids in iterations:
        seen.update(ids)
        given = seen.total()
        if given >= rows:
            epochs += 1
            lost += rows - len(seen)
            doubled += given - len(seen)
            seen.clear()
    return Tally(epochs, lost, doubled + seen.total() - len(seen))
