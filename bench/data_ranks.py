"""The program that each rank of a contender of data.py and rivals.py runs.

It reads every batch, and trains a model if the job names one. `data_ranks.py JOB` is one rank of a
peer that has no launcher. Each program's loops() returns an iterator of (ids, x) per
epoch. In the run's folder a rank writes rankR.json, with the times, and rankR.npz, with its ids in
the order of arrival.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import data_rows
import rival_models

WORLD = 2
EPOCHS = 2  # unless the job has another number
LOADER_WORKERS = 1  # worker processes of a rank's DataLoader: two ranks share two cores

Job = dict[str, Any]  # see data_side.py
Batches = Iterator[tuple[Any, Any]]


def loops(job: Job, rank: int, ready: float, epoch_of: Callable[[int], Batches]) -> None:
    """Runs the epochs, then writes what the bench checks and counts; writing is not timed.

    `ready`: the time at which the program had imported its packages.
    """
    import numpy as np

    training = rival_models.Training(job) if "model" in job else None
    marks: Job = {"ready": ready, "ends": [], "sums": []}
    ids: dict[str, list[Any]] = {}
    for epoch in range(epochs_of(job)):
        found = ids.setdefault(f"epoch{epoch}", [])
        total = 0.0
        with training.epoch() if training is not None else nullcontext():
            for numbers, x in epoch_of(epoch):
                total += data_rows.look(x, job["step"])
                if training is not None:
                    training.step(numbers, x)
                found.append(numbers)
                marks.setdefault("first", time.time())
        marks["ends"].append(time.time())
        marks["sums"].append(total)
        marks.setdefault("first", marks["ends"][-1])
    none = np.empty(0, np.int64)
    arrays = {name: np.concatenate([none, *map(np.asarray, found)]) for name, found in ids.items()}
    folder = Path(job["folder"])
    np.savez(folder / f"rank{rank}.npz", **arrays)
    (folder / f"rank{rank}.json").write_text(json.dumps(marks))


def epochs_of(job: Job) -> int:
    return job.get("epochs", EPOCHS)


# ---- programs run by a cluster


def hearth(job: Job, ctx: Any) -> None:
    import torch

    torch.set_num_threads(1)
    ready = time.time()
    shuffle = {"none": False, "window": True, "full": "full"}[job["mode"]]
    loader = ctx.dataset("train", batch_size=job["batch_size"], shuffle=shuffle)

    def epoch_of(epoch: int) -> Batches:
        loader.set_epoch(epoch)
        for batch in loader:
            yield batch["id"], batch["x"]

    loops(job, ctx.rank, ready, epoch_of)


def ray(job: Job) -> None:
    import ray.train
    import torch

    torch.set_num_threads(1)
    ready = time.time()
    shard = ray.train.get_dataset_shard("train")
    options: Job = {"batch_size": job["batch_size"]}
    if job["mode"] == "window":
        options["local_shuffle_buffer_size"] = job["window"]
    if job["kind"] == "image":  # a tensor cannot hold byte strings
        options["collate_fn"] = lambda batch: {
            "id": torch.as_tensor(batch["id"]), "x": list(batch["x"])
        }  # fmt: skip

    def epoch_of(epoch: int) -> Batches:
        for batch in shard.iter_torch_batches(**options):
            yield batch["id"], batch["x"]

    loops(job, ray.train.get_context().get_world_rank(), ready, epoch_of)


def distributor(job: Job) -> None:
    """Runs the ranks through torchrun in Spark tasks."""
    import torch

    torch.set_num_threads(1)
    loader(job, int(os.environ["RANK"]))


# ---- programs run as plain processes


def petastorm(job: Job, rank: int) -> None:
    import petastorm.pytorch as pytorch
    from petastorm import make_batch_reader

    ready = time.time()
    options: Job = {
        "workers_count": LOADER_WORKERS,
        "cur_shard": rank,
        "shard_count": WORLD,
        "shuffle_row_groups": job["mode"] != "none",
        "transform_spec": _bytes_as_array(job) if job["kind"] == "image" else None,
    }
    full = job["mode"] == "full"
    loader_of = pytorch.BatchedDataLoader
    if full:  # the only shuffle that mixes all rows; it keeps them in memory
        capacity = {"num_epochs": epochs_of(job), "rows_capacity": job["rows"] + 1, "shuffle": True}

        def loader_of(reader: Any, batch_size: int, shuffling_queue_capacity: int) -> Any:
            return pytorch.InMemBatchedDataLoader(reader, batch_size, **capacity)

    queue = job["window"] if job["mode"] == "window" else 0
    if "converter" in job:
        import pickle

        converter = pickle.loads(bytes.fromhex(job["converter"]))
        made = converter.make_torch_dataloader(
            job["batch_size"],
            num_epochs=1,
            shuffling_queue_capacity=queue,
            data_loader_fn=loader_of,
            **options,
        )
    else:
        made = loader_of(
            make_batch_reader(job["urls"], num_epochs=1, **options),
            batch_size=job["batch_size"],
            shuffling_queue_capacity=queue,
        )
    # Its threads must end before the interpreter does.
    with closing(_petastorm_epochs(made, job["batch_size"] if full else 0)) as epochs:
        loops(job, rank, ready, lambda epoch: next(epochs))


def _petastorm_epochs(made: Any, batch_size: int) -> Iterator[Batches]:
    """Returns one iterator per epoch.

    With a batch size: one iterator for all epochs, split by row count.
    """
    import itertools

    with made as loader:
        whole = iter(loader) if batch_size else None
        while True:
            batches = loader
            if whole is not None:
                batches = itertools.islice(whole, -(-len(loader._buffer[0]) // batch_size))
            yield ((batch["id"], batch["x"]) for batch in batches)


def _bytes_as_array(job: Job) -> Any:
    """petastorm's loaders reject bytes.

    All images here have equal length, so they become the rows of a matrix.
    """
    import numpy as np
    from petastorm import TransformSpec

    def transform(rows: Any) -> Any:
        rows["x"] = [np.frombuffer(row, np.uint8) for row in rows["x"]]
        return rows

    return TransformSpec(transform, edit_fields=[("x", np.uint8, (job["width"],), False)])


def mds(job: Job, rank: int) -> None:
    from streaming import StreamingDataLoader, StreamingDataset

    ready = time.time()
    dataset = StreamingDataset(
        local=job["written"],
        batch_size=job["batch_size"],
        shuffle=job["mode"] != "none",
        shuffle_algo="naive" if job["mode"] == "full" else "py1br",
        shuffle_block_size=job["window"] * WORLD,
    )
    loader = StreamingDataLoader(
        dataset,
        batch_size=job["batch_size"],
        num_workers=LOADER_WORKERS,
        persistent_workers=True,
    )
    loops(job, rank, ready, lambda epoch: ((batch["id"], batch["x"]) for batch in loader))


def loop(job: Job, rank: int) -> None:
    """A loop over pyarrow's batches in the rank itself."""
    import pyarrow.parquet  # noqa: F401

    ready = time.time()
    loops(job, rank, ready, _ParquetRows(job, rank).epoch)


def memory(job: Job, rank: int) -> None:
    """The same, with all rows in memory from the first epoch on."""
    loop({**job, "mode": "full"}, rank)


def bare(job: Job, rank: int) -> None:
    """Reads no rows: measures the model and the two torch processes alone."""
    import torch

    ready = time.time()
    shape = job["batch_size"], job["width"]
    dtype = {"float": torch.float32, "image": torch.uint8, "token": torch.int64}[job["kind"]]
    batch = torch.arange(shape[0]), torch.zeros(shape, dtype=dtype)
    loops(job, rank, ready, lambda epoch: iter([batch] * 10))


def loader(job: Job, rank: int) -> None:
    """A torch DataLoader whose workers read the files."""
    import pyarrow.parquet  # noqa: F401  (its workers are forked)
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    ready = time.time()

    class Rows(IterableDataset):
        def __iter__(self) -> Batches:
            if not hasattr(self, "rows"):
                worker = get_worker_info().id
                self.rows, self.epoch = _ParquetRows(job, rank, worker, LOADER_WORKERS), 0
            self.epoch += 1
            return self.rows.epoch(self.epoch)

    batches = DataLoader(
        Rows(), batch_size=None, num_workers=LOADER_WORKERS, persistent_workers=True
    )
    loops(job, rank, ready, lambda epoch: iter(batches))


class _ParquetRows:
    """One reader's share of the Parquet files, as shuffled batches of tensors."""

    def __init__(self, job: Job, rank: int, worker: int = 0, workers: int = 1):
        self._job = job
        self._share = job["files"][rank * workers + worker :: WORLD * workers]
        self._whole: Any = None  # all rows, kept for the next epoch if the shuffle mixes all

    def epoch(self, epoch: int) -> Batches:
        import numpy as np
        import pyarrow as pa

        random = np.random.default_rng(epoch)
        for table in self._tables():
            if self._job["mode"] != "none":
                table = table.take(pa.array(random.permutation(len(table))))
            yield from map(self._tensors, table.to_batches(self._job["batch_size"]))

    def _tables(self) -> Iterator[Any]:
        """The tables, each of which is shuffled as a whole."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._job["mode"] == "full":
            if self._whole is None:
                self._whole = pa.concat_tables(map(pq.read_table, self._share)).combine_chunks()
            yield self._whole
            return
        most = self._job["window"] if self._job["mode"] == "window" else self._job["batch_size"]
        gathered: list[Any] = []
        for file in self._share:
            for batch in pq.ParquetFile(file).iter_batches(most):
                gathered.append(batch)
                if sum(map(len, gathered)) >= most:
                    yield pa.Table.from_batches(gathered).combine_chunks()
                    gathered = []
        if gathered:
            yield pa.Table.from_batches(gathered).combine_chunks()

    def _tensors(self, batch: Any) -> tuple[Any, Any]:
        import numpy as np
        import torch

        column = batch.column("x")
        if self._job["kind"] == "image":  # all images have equal length
            _, offsets, values = column.buffers()
            start = int(np.frombuffer(offsets, np.int32)[column.offset])
            size = len(batch) * self._job["width"]
            x = np.frombuffer(values, np.uint8, size, start)
        else:
            x = column.flatten().to_numpy()
        ids = torch.from_numpy(batch.column("id").to_numpy())
        return ids, torch.from_numpy(x.reshape(len(batch), self._job["width"]))


def main() -> None:
    import warnings

    warnings.filterwarnings("ignore")
    job = json.loads(Path(sys.argv[1]).read_text())
    import torch

    torch.set_num_threads(1)
    globals()[job["contender"]](job, int(os.environ["RANK"]))


if __name__ == "__main__":
    main()
