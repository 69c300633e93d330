#!/usr/bin/env python3
"""A DDP program on a DataFrame's rows: hearth.torch against pyspark's own TorchDistributor.

`bench/torch_distributor.py --json FILE`. Two executors with one rank of one thread each; a cached
DataFrame of 784 floats and a label. All contenders run the same program; its source of rows and its
backend differ:

TorchCluster      the DataFrame feeds the ranks; the backend is "hearth"
TorchDistributor  pyspark's, the peer: Spark first writes Parquet files, which the ranks read; the
                  backend is "gloo"
import changed    the peer's program and files with hearth.torch.TorchDistributor and "hearth"

`start` is seconds from the call until rank 0 has done its first step. `training` is rows per second
from then to the last step. `job` is rows per second from the call, with the writing of files, until
the driver has the result.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from report import Report, arguments, in_turn

WORLD = 2
WIDTH = 784
SETTINGS = {"batch": 64, "epochs": 3}
PEER = "pyspark's TorchDistributor on Parquet"


def train(batches: Iterator[Any], backend: str) -> dict[str, float]:
    """The program of each rank.

    Returns the times of rank 0's first and last step, and the number of rows in all ranks' first
    step.
    """
    import os
    import time

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    torch.manual_seed(0)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    marks: dict[str, float] = {}
    for (x, y), weight in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        (loss * weight).backward()
        optimizer.step()
        if not marks:
            marks = {"first": time.time(), "rows": len(y) * dist.get_world_size()}
        marks["last"] = time.time()
    dist.destroy_process_group()
    return marks


def train_files(path: str, settings: dict[str, int], backend: str) -> dict[str, float]:
    """The program of a TorchDistributor on each rank: reads this rank's Parquet files."""
    import os
    import warnings

    warnings.filterwarnings("ignore", message="The given NumPy array is not writable")

    def batches() -> Iterator[Any]:
        from pathlib import Path

        import pyarrow.parquet as pq
        import torch

        files = sorted(Path(path).glob("*.parquet"))
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        for _ in range(settings["epochs"]):
            for file in files[rank::world]:
                for batch in pq.ParquetFile(file).iter_batches(settings["batch"]):
                    x = batch.column("x").flatten().to_numpy().reshape(len(batch), -1)
                    y = batch.column("y").to_numpy()
                    yield (torch.from_numpy(x), torch.from_numpy(y)), 1.0

    return train(batches(), backend)


def train_fed(args: dict[str, Any], ctx: Any) -> None:
    """The program of a TorchCluster on each rank: reads the rows that Spark sends."""
    import json
    from pathlib import Path

    from hearth.torch import in_step

    dataset = ctx.get_data_feed().as_iterable_dataset(args["batch"], ("x", "y"))
    marks = train(in_step(dataset), ctx.backend)
    if ctx.rank == 0:
        Path(args["marks"]).write_text(json.dumps(marks))


class Bench:
    """The contenders on one session.

    Each run returns the seconds to the first step, from the call and from when Spark has written
    its files, and rows per second of training and of the job.
    """

    def __init__(self, spark: Any, rows: int, folder: Path):
        self._spark = spark
        self._rows = rows
        self._folder = folder
        x = f"transform(sequence(1, {WIDTH}), i -> cast((id * 31 + i) % 1000 as float))"
        self._frame = spark.sql(f"select {x} x, id % 10 y from range(0, {rows}, 1, {WORLD})")
        self._frame.cache().count()
        self._parquet = str(folder / "rows")

    def cluster(self) -> dict[str, float]:
        import json

        from hearth.torch import TorchCluster

        begun = time.time()
        marks = self._folder / "marks"
        args = {**SETTINGS, "marks": str(marks)}
        with TorchCluster.run(self._spark, train_fed, args, workers=WORLD) as cluster:
            cluster.train(self._frame, epochs=SETTINGS["epochs"])
        return self._figures(begun, begun, json.loads(marks.read_text()))

    def pyspark(self) -> dict[str, float]:
        from pyspark.ml.torch.distributor import TorchDistributor

        begun = time.time()
        self._frame.write.mode("overwrite").parquet(self._parquet)
        return self._distributor(TorchDistributor, "gloo", begun)

    def import_changed(self) -> dict[str, float]:
        """Trains on the existing files."""
        from hearth.torch import TorchDistributor

        return self._distributor(TorchDistributor, "hearth", time.time())

    def _distributor(self, kind: Callable[..., Any], backend: str, begun: float) -> dict[str, Any]:
        written = time.time()
        ranks = kind(num_processes=WORLD, local_mode=False, use_gpu=False)
        marks = ranks.run(train_files, self._parquet, SETTINGS, backend)
        return self._figures(begun, written, marks)

    def _figures(self, begun: float, written: float, marks: dict[str, float]) -> dict[str, float]:
        rows = self._rows * SETTINGS["epochs"]
        found = {
            "start": marks["first"] - begun,
            "start, files written": marks["first"] - written,
            "training": (rows - marks["rows"]) / (marks["last"] - marks["first"]),
            "job": rows / (time.time() - begun),
        }
        shown = ", ".join(f"{name} {value:.4g}" for name, value in found.items())
        print(f"{rows} rows: {shown}", file=sys.stderr, flush=True)
        return found


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40_000, help="of the DataFrame")
    flags = parser.parse_args()
    from hearth.spark import session

    spark = session.start("bench-torch-distributor", executors=WORLD)
    with tempfile.TemporaryDirectory(prefix="hearth-bench-") as folder:
        bench = Bench(spark, flags.rows, Path(folder))
        calls = {
            "pyspark": bench.pyspark,
            "TorchCluster": bench.cluster,
            "import changed": bench.import_changed,
        }
        found = in_turn(flags.rounds, calls)
    spark.stop()
    report = Report()
    pairs = [("TorchCluster", figure) for figure in ("start", "training", "job")]
    pairs += [("import changed", figure) for figure in ("start, files written", "training")]
    for contender, figure in pairs:
        report.add(
            f"{contender}/{figure}",
            ours=[values[figure] for values in found[contender]],
            peer=[values[figure] for values in found["pyspark"]],
            peer_name=PEER,
            unit="s" if figure.startswith("start") else "rows/s",
            higher_is_better=not figure.startswith("start"),
        )
    report.save(flags.json)


if __name__ == "__main__":
    main()
