#!/usr/bin/env python3
"""Rows to the GPU during a running step: Hearth's datasets and feed against torch's DataLoader.

`bench/gpu_feed.py --json FILE`. Rows are 784 floats, raw images of 150 KB (uint8, 3 x 224 x 224) or
JPEG files of 150 KB, which become float32 of 3 x 224 x 224 by random crop, flip and normalization.
All sides put batches into pinned memory and copy them during the previous step. A dataset's epoch
is measured after its rows have been delivered once, and is shuffled; the others read Parquet files
in order. Rows/s are shown for a step that only waits for its data, and, for images, for a step of
CaffeNet.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("python", "bench", "tests/python")]

BATCH = 256
SHAPES: dict[str, tuple[int, int, Any]] = {
    "784 floats": (60_000, 784, np.float32),
    "150 KB images": (4096, 150_528, np.uint8),
    "JPEG": (4096, 0, bytes),
}
WORKERS = (0, 4, 8)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def write_files(folder: Path, name: str) -> str:
    """Eight Parquet files of random rows: x, lists of one length, and label."""
    rows, length, kind = SHAPES[name]
    random = np.random.default_rng(0)
    path = folder / name.replace(" ", "_")
    path.mkdir()
    for number in range(8):
        count = rows // 8
        if kind is bytes:
            import image

            files = [image.jpeg(seed, 375, 500) for seed in range(64)]
            column = pa.array([files[row % 64] for row in range(count)], pa.binary())
        elif kind == np.uint8:
            values = pa.array(random.integers(0, 256, count * length, dtype=np.uint8))
            column = pa.FixedSizeListArray.from_arrays(values, length)
        else:
            column = pa.FixedSizeListArray.from_arrays(
                pa.array(random.random(count * length, dtype=np.float32)), length
            )
        labels = pa.array(random.integers(0, 1000, count))
        table = pa.table({"x": column, "label": labels})
        pq.write_table(table, path / f"{number}.parquet", compression="none", use_dictionary=False,
                       row_group_size=BATCH)  # fmt: skip
    return str(path)


def batches_of_feed(path: str) -> Iterator[tuple[Any, Any]]:
    from hearth.torch.feeds import FileFeed

    feed = FileFeed(path, ("x", "label"), (0, 1), 1)
    yield from feed.as_iterable_dataset(BATCH, ("x", "label"))


def dataset(name: str, path: str) -> Callable[[], Iterator[tuple[Any, Any]]]:
    """Epochs of ctx.dataset() on the single rank of a run."""
    import dataset_ranks

    from hearth.data.image import image
    from hearth.data.options import LoaderOptions
    from hearth.torch.loader import TensorLoader

    partitions = [
        batch
        for file in sorted(Path(path).iterdir())
        for batch in pq.ParquetFile(file).iter_batches()
    ]
    options: dict[str, Any] = {"columns": ("x", "label")}
    if name == "JPEG":
        options["transforms"] = {"x": image("jpeg", size=224, mean=MEAN, std=STD, to="float32")}
    rank = dataset_ranks.rank_dataset(partitions, 0, 1)
    loader = TensorLoader(rank, LoaderOptions(BATCH, **options), pin_memory=True)
    return lambda: iter(loader)


class ParquetDataset(torch.utils.data.IterableDataset):
    """Minibatches of the same files by pyarrow, files shared among the workers."""

    def __init__(self, path: str):
        self.files = sorted(str(file) for file in Path(path).glob("*.parquet"))

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        worker = torch.utils.data.get_worker_info()
        files = self.files if worker is None else self.files[worker.id :: worker.num_workers]
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches(BATCH):
                x = batch.column(0)
                labels = torch.from_numpy(batch.column(1).to_numpy().copy())
                if pa.types.is_binary(x.type):
                    yield torch.stack([self.decoded(row.as_buffer()) for row in x]), labels
                    continue
                values = x.flatten().to_numpy(zero_copy_only=False).reshape(len(batch), -1)
                yield torch.from_numpy(values.copy()), labels

    def decoded(self, encoded: Any) -> Any:
        """torchvision's decoder and tensor transforms, its fastest ones on CPUs."""
        from torchvision.io import ImageReadMode, decode_jpeg
        from torchvision.transforms import v2

        transform = v2.Compose([
            v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD),
        ])  # fmt: skip
        encoded = torch.frombuffer(bytearray(encoded), dtype=torch.uint8)
        return transform(decode_jpeg(encoded, mode=ImageReadMode.RGB))


def batches_of_torch(path: str, workers: int) -> Iterator[tuple[Any, Any]]:
    yield from torch.utils.data.DataLoader(
        ParquetDataset(path), batch_size=None, num_workers=workers, pin_memory=True,
        prefetch_factor=2 if workers else None,
    )  # fmt: skip


def to_device(batches: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yields each minibatch in GPU memory; the next one is copied while it is used."""
    stream = torch.cuda.Stream()

    def start(batch: tuple[Any, ...]) -> tuple[Any, ...]:
        with torch.cuda.stream(stream):
            pinned = [t if t.is_pinned() else t.pin_memory() for t in batch]
            return tuple(t.cuda(non_blocking=True) for t in pinned)

    coming = None
    for batch in batches:
        ready, coming = coming, start(batch)
        if ready is not None:
            yield ready
        torch.cuda.current_stream().wait_stream(stream)
    if coming is not None:
        yield coming


def image_step() -> Callable[[Any, Any], None]:
    """A step of CaffeNet on uint8 or float32 images."""
    import torch_nets

    model = torch_nets.caffenet().cuda().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, fused=True)
    pad = torch.nn.ZeroPad2d((1, 2, 1, 2))

    def step(x: Any, label: Any) -> None:
        optimizer.zero_grad(set_to_none=True)
        scaled = x.float() / 255 if x.dtype == torch.uint8 else x
        model.loss(pad(scaled.view(-1, 3, 224, 224)), label).backward()
        optimizer.step()

    return step


def seconds_of(
    batches: Iterator[tuple[Any, Any]], step: Callable[[Any, Any], object]
) -> tuple[int, float]:
    """Returns (rows, seconds) of an epoch without its first minibatch."""
    rows, start = 0, 0.0
    for number, (x, label) in enumerate(to_device(batches)):
        step(x, label)
        if number == 0:
            torch.cuda.synchronize()
            start = time.perf_counter()
        else:
            rows += len(x)
    torch.cuda.synchronize()
    return rows, time.perf_counter() - start


def measure(name: str, path: str, rounds: int) -> list[dict[str, Any]]:
    """The rows of one shape."""
    contenders: dict[str, Callable[[], Iterator[Any]]] = {"dataset": dataset(name, path)}
    if name != "JPEG":
        contenders["feed of files"] = lambda: batches_of_feed(path)
    for workers in WORKERS[1:] if name == "JPEG" else WORKERS:
        contenders[f"DataLoader, {workers} workers"] = lambda w=workers: batches_of_torch(path, w)
    steps: dict[str, Callable[[Any, Any], object]] = {"look": lambda x, label: x[0].sum()}
    if name != "784 floats":
        steps["caffenet"] = image_step()
    found = []
    for step_name, step in steps.items():
        rates: dict[str, list[float]] = {key: [] for key in contenders}
        for turn in range(rounds + 1):
            for key, make in contenders.items():
                rows, seconds = seconds_of(make(), step)
                if turn:
                    rates[key].append(rows / seconds)
        best = {key: max(values) for key, values in rates.items()}
        row: dict[str, Any] = {"name": f"{name}/{step_name}", "rows_per_s": best}
        if step_name == "caffenet":
            memory = BATCH / bare_step_s(step, SHAPES[name][2])
            row["rows_per_s"]["from the GPU's memory"] = memory
            row["wait"] = 1 - max(rates["dataset"]) / memory
        found.append(row)
        print(json.dumps(row), flush=True)
    return found


def bare_step_s(step: Callable[[Any, Any], object], kind: Any) -> float:
    """Seconds of a step whose data has already arrived."""
    made = torch.uint8 if kind == np.uint8 else torch.float32
    x = torch.randint(0, 256, (BATCH, 3, 224, 224), device="cuda").to(made)
    label = torch.randint(0, 1000, (BATCH,), device="cuda")
    for _ in range(3):
        step(x, label)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(10):
        step(x, label)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    flags = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="hearth-gpu-feed-") as folder:
        for name in SHAPES:
            rows += measure(name, write_files(Path(folder), name), flags.rounds)
            if flags.json:
                flags.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
