#!/usr/bin/env python3
"""predict() against predict_batch_udf(), and the bare model on tensors in memory: rows/s.

`bench/inference.py --json FILE`. "mlp": rows of 784 floats. "resnet": 150 KB JPEGs, decoded by the
same code on all sides; only the bare model reads decoded images. One task and one thread each; all
columns are kept. "device": an emulated accelerator (a lock on this host and a sleep of --device-ms
per minibatch), while two executors decode; its peer is its maximum rate, or the UDF, which acquires
the lock in each executor. `--ray` adds Ray Data's map_batches for "mlp" (from Parquet).

"Spark alone" is a mapInArrow that returns all rows unchanged: the cost of a job without a model.
The rows "... cpu" compare the processor time of all processes per row, which other programs on the
machine affect less than the rates.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from report import Report, alternate, arguments, in_turn, seconds

BATCH = 64
DEVICE_BATCH = 16
SIDE = 64


def make_mlp() -> Any:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = torch.nn.Linear(784, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024)
    return torch.nn.Sequential(*layers, torch.nn.ReLU(), torch.nn.Linear(1024, 10)).eval()


def make_resnet() -> Any:
    """A network of 18 layers like ResNet-18, for images of 3 x 224 x 224."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, before: int, after: int):
            super().__init__()
            stride = 1 if before == after else 2
            self.path = nn.Sequential(
                nn.Conv2d(before, after, 3, stride, 1, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(),
                nn.Conv2d(after, after, 3, 1, 1, bias=False),
                nn.BatchNorm2d(after),
            )
            self.past = nn.Conv2d(before, after, 1, stride) if stride > 1 else nn.Identity()

        def forward(self, x: Any) -> Any:
            return torch.relu(self.path(x) + self.past(x))

    torch.set_num_threads(1)
    torch.manual_seed(0)
    widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
    blocks = [Block(a, b) for a, b in itertools.pairwise(widths)]
    stem = nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)
    return nn.Sequential(*stem, *blocks, *head).eval()


def decode(images: np.ndarray, size: int = 224) -> np.ndarray:
    from hearth.data import image

    transform = image("jpeg", size=size, crop="center", to="float32", threads=1)
    return transform.apply(list(images), np.zeros(len(images), np.uint64))[0]


def applied(model: Any, arrays: np.ndarray) -> np.ndarray:
    import torch

    with torch.inference_mode():
        return model(torch.from_numpy(np.array(arrays))).numpy()


def resnet_of_files() -> Callable[[np.ndarray], np.ndarray]:
    model = make_resnet()
    return lambda images: applied(model, decode(images))


def mlp_function() -> Callable[[np.ndarray], np.ndarray]:
    model = make_mlp()
    return lambda x: applied(model, x)


def device_function(lock: str, seconds_: float) -> Callable[[], Any]:
    """The emulated accelerator: one minibatch at a time on this host."""

    def make() -> Callable[[np.ndarray], np.ndarray]:
        import fcntl
        import time

        file = open(lock, "w")  # noqa: SIM115

        def run(pixels: np.ndarray) -> np.ndarray:
            fcntl.flock(file, fcntl.LOCK_EX)
            time.sleep(seconds_)
            fcntl.flock(file, fcntl.LOCK_UN)
            return pixels.reshape(len(pixels), -1)[:, 0].astype(np.float32)

        return run

    return make


def write_floats(path: str, rows: int) -> np.ndarray:
    values = np.random.default_rng(1).random((rows, 784), dtype=np.float32)
    offsets = pa.array(np.arange(0, values.size + 1, 784, dtype=np.int32))
    column = pa.ListArray.from_arrays(offsets, pa.array(values.reshape(-1)))
    table = pa.table({"id": pa.array(np.arange(rows)), "x": column})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    return values


def write_images(path: str, rows: int, files: int = 1) -> list[bytes]:
    from image import jpeg

    distinct = [jpeg(seed, 375, 500) for seed in range(8)]
    images = distinct * (rows // len(distinct))
    share = len(images) // files
    Path(path).mkdir()
    for number in range(files):
        part = images[number * share : (number + 1) * share]
        table = pa.table({"id": pa.array(range(len(part))), "x": pa.array(part, pa.binary())})
        pq.write_table(table, f"{path}/{number}.parquet", compression="none", use_dictionary=False)
    return images


def udf_of(frame: Any, make: Callable[[], Any], shape: list[int] | None, batch: int) -> Any:
    from pyspark.ml.functions import predict_batch_udf
    from pyspark.sql.types import ArrayType, FloatType

    shapes = [shape] if shape else None
    kind = ArrayType(FloatType()) if batch == BATCH else FloatType()
    function = predict_batch_udf(
        make, return_type=kind, batch_size=batch, input_tensor_shapes=shapes
    )
    return frame.withColumn("y", function("x"))


def computed(frame: Any) -> None:
    frame.write.format("noop").mode("append").save()


def passed_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def processor_s() -> float:
    """Processor time so far of this process and its descendants: the JVM and Python workers."""
    import psutil

    this = psutil.Process()
    times = []
    for process in [this, *this.children(recursive=True)]:
        with suppress(psutil.Error):
            times.append(process.cpu_times())
    return sum(t.user + t.system for t in times)


def of_one_core(options: Any, report: Report, folder: str) -> None:
    import torch

    from hearth.ml import predict
    from local_spark import start_spark

    torch.set_num_threads(1)
    spark = start_spark("bench-inference", "2g")
    if report.wants("mlp"):
        rows, path = options.rows, f"{folder}/floats.parquet"
        values = write_floats(path, rows)
        frame, model = spark.read.parquet(path), mlp_function()
        ours = predict(frame, mlp_function, "x", "y array<float>", BATCH)
        peer = udf_of(frame, mlp_function, [784], BATCH)
        alone = [values[at : at + BATCH] for at in range(0, rows, BATCH)]
        frames = {"ours": ours, "predict_batch_udf": peer, "Spark alone": passing(frame)}
        measure(options, report, ("mlp", rows), frames, lambda: [model(x) for x in alone])
        if options.ray:
            ours, theirs = alternate(
                options.rounds,
                lambda: rows / seconds(lambda: computed(predict_again(frame))),
                lambda: ray_rate(path),
            )
            report.add("inference/mlp/ray", ours=ours, peer=theirs, peer_name="Ray", unit="rows/s")
    if report.wants("resnet"):
        rows, path = options.images, f"{folder}/images"
        decoded = [decode(np.array(write_images(path, rows), object)[:BATCH])] * (rows // BATCH)
        frame, net = spark.read.parquet(path), make_resnet()
        ours = predict(frame, make_resnet, "x", "y array<float>", BATCH, prepare=decode)
        peer = udf_of(frame, resnet_of_files, None, BATCH)
        frames = {"ours": ours, "predict_batch_udf": peer, "Spark alone": passing(frame)}
        measure(
            options, report, ("resnet", rows), frames, lambda: [applied(net, x) for x in decoded]
        )
    spark.stop()


def passing(frame: Any) -> Any:
    return frame.mapInArrow(passed_on, frame.schema)


def predict_again(frame: Any) -> Any:
    from hearth.ml import predict

    return predict(frame, mlp_function, "x", "y array<float>", BATCH)


def measure(
    options: Any,
    report: Report,
    what: tuple[str, int],
    frames: Mapping[str, Any],
    alone: Callable[[], object],
) -> None:
    name, rows = what
    calls: dict[str, Callable[[], object]] = {
        key: partial(computed, frame) for key, frame in frames.items()
    }
    calls["model alone"] = alone
    found = in_turn(options.rounds, {key: partial(costs, c, rows) for key, c in calls.items()})
    ours = found.pop("ours")
    for peer_name, peer in found.items():
        for kind, at, unit in (("", 0, "rows/s"), (" cpu", 1, "us/row")):
            report.add(
                f"inference/{name}/{peer_name}{kind}",
                ours=[each[at] for each in ours],
                peer=[each[at] for each in peer],
                peer_name=peer_name,
                unit=unit,
                higher_is_better=not at,
            )


def costs(call: Callable[[], object], rows: int) -> tuple[float, float]:
    """Rows per second, and microseconds of processor time per row."""
    before = processor_s()
    rate = rows / seconds(call)
    return rate, (processor_s() - before) / rows * 1e6


RAY = """
import sys, time
import ray
from inference import BATCH, mlp_function
class Model:
    def __init__(self):
        self.model = mlp_function()
    def __call__(self, batch):
        import numpy as np
        return {**batch, "y": self.model(np.stack(batch["x"]))}
ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
rows = ray.data.read_parquet(sys.argv[1])
for _ in range(2):
    start = time.perf_counter()
    made = rows.map_batches(Model, batch_size=BATCH, compute=ray.data.ActorPoolStrategy(size=1))
    count = sum(len(batch["y"]) for batch in made.iter_batches(batch_size=None))
    rate = count / (time.perf_counter() - start)
print("rate", rate)
"""


def ray_rate(path: str) -> float:
    import data_environments

    command = [str(data_environments.python("ray")), "-c", RAY, path]
    # Ray's workers import this file, too.
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    lines = done.stdout.splitlines()
    return float(next(line for line in lines if line.startswith("rate")).split()[1])


def with_a_device(options: Any, report: Report, folder: str) -> None:
    from hearth.ml import predict, release_devices
    from hearth.spark import session as spark_session

    spark = spark_session.start("bench-devices", executors=2)
    path, pause = f"{folder}/device", options.device_ms / 1000
    rows = len(write_images(path, options.device_images, files=4))
    frame = spark.read.parquet(path)
    make = device_function(f"{folder}/lock", pause)
    batches = 4 * -(-(rows // 4) // DEVICE_BATCH)

    def small(x: np.ndarray) -> np.ndarray:
        return decode(x, SIDE)

    def both() -> Callable[[np.ndarray], np.ndarray]:
        function = make()
        return lambda images: function(decode(images, SIDE))

    ours = predict(frame, make, "x", "y float", DEVICE_BATCH, devices=1, prepare=small)
    peer = udf_of(frame, both, None, DEVICE_BATCH)
    mine, udf = alternate(
        options.rounds,
        lambda: rows / seconds(lambda: computed(ours)),
        lambda: rows / seconds(lambda: computed(peer)),
    )
    for peer_name, values in (
        ("predict_batch_udf", udf),
        ("the device's ceiling", [rows / (batches * pause)]),
    ):
        report.add(
            f"inference/device/{peer_name}", ours=mine, peer=values, peer_name=peer_name,
            unit="rows/s",
        )  # fmt: skip
    release_devices()
    spark.stop()


def options_of(arguments_: list[str]) -> Any:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=30_000, help="of 784 floats")
    parser.add_argument("--images", type=int, default=128, help="for the ResNet, a multiple of 64")
    parser.add_argument("--device-images", type=int, default=1024, help="a multiple of 64")
    parser.add_argument("--device-ms", type=float, default=80.0, help="for a minibatch of 16")
    parser.add_argument("--ray", action="store_true", help="measure Ray Data, too")
    return parser.parse_args(arguments_)


def parts() -> Iterator[tuple[tuple[str, ...], Callable[..., None]]]:
    yield ("mlp", "resnet"), of_one_core
    yield ("device",), with_a_device


def main() -> None:
    options = options_of(sys.argv[1:])
    report = Report(options.only)
    with tempfile.TemporaryDirectory() as folder:
        for names, part in parts():
            if any(report.wants(name) for name in names):
                part(options, report, folder)
    report.save(options.json)


if __name__ == "__main__":
    main()
