#!/usr/bin/env python3
"""map_blocks() against the same function in a plain mapInArrow(): rows/s of one core.

`bench/ml_blocks.py --json FILE`. Rows of 784 floats times a matrix of 784 x 10, and rows of one
double plus 3; input columns are kept, as both do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from local_spark import start_spark
from report import Report, alternate, arguments, seconds

WEIGHTS = np.random.default_rng(0).random((784, 10), dtype=np.float32)


def product_by_hand(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The hand-written form: the list's values as an array, the result as a list."""
    weights = np.random.default_rng(0).random((784, 10), dtype=np.float32)
    for batch in batches:
        column = batch.column("x")
        found = column.flatten().to_numpy().reshape(-1, 784) @ weights
        offsets = pa.array(np.arange(0, found.size + 1, 10, dtype=np.int32))
        scores = pa.ListArray.from_arrays(offsets, pa.array(found.reshape(-1)))
        yield pa.RecordBatch.from_arrays([*batch.columns, scores], names=[*batch.schema.names, "y"])


def sum_by_hand(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        found = pa.array(batch.column("x").to_numpy() + 3)
        yield pa.RecordBatch.from_arrays([*batch.columns, found], names=[*batch.schema.names, "y"])


def write(path: str, rows: int, length: int) -> None:
    random = np.random.default_rng(1)
    if length == 1:
        column = pa.array(random.random(rows))
    else:
        offsets = pa.array(np.arange(0, rows * length + 1, length, dtype=np.int32))
        values = pa.array(random.random(rows * length, dtype=np.float32))
        column = pa.ListArray.from_arrays(offsets, values)
    pq.write_table(pa.table({"x": column}), path, compression="none", use_dictionary=False)


def main() -> None:
    from hearth.ml import map_blocks

    options = arguments(__doc__.splitlines()[0]).parse_args()
    report, spark = Report(options.only), start_spark("bench-blocks", "2g")

    def product(x: np.ndarray, weights: np.ndarray = WEIGHTS) -> dict[str, np.ndarray]:
        return {"y": x @ weights}

    cases = {
        "784 floats": (
            60_000,
            784,
            product,
            product_by_hand,
            "y array<float>",
        ),
        "a double": (5_000_000, 1, lambda x: {"y": x + 3}, sum_by_hand, "y double"),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, (rows, length, function, by_hand, outputs) in cases.items():
            path = f"{folder}/{length}.parquet"
            write(path, rows, length)
            frame = spark.read.parquet(path)
            schema = f"x {frame.schema['x'].dataType.simpleString()}, {outputs}"

            def run(made: Any, rows: int = rows) -> float:
                return rows / seconds(lambda: made.write.format("noop").mode("append").save())

            ours, peer = alternate(
                options.rounds,
                lambda f=function, o=outputs, d=frame: run(map_blocks(f, d, outputs=o)),
                lambda f=by_hand, s=schema, d=frame: run(d.mapInArrow(f, s)),
            )
            report.add(
                f"map_blocks/{name}, rows/s", ours=ours, peer=peer,
                peer_name="mapInArrow by hand", unit="rows/s",
            )  # fmt: skip
    spark.stop()
    report.save(options.json)


if __name__ == "__main__":
    main()
