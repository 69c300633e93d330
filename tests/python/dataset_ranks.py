"""The loaders of several ranks over partitions of ids, in one process, as nodes create them."""

from __future__ import annotations

import os
import tempfile

import pyarrow as pa
from hearth.native._core import PartitionWriter

from hearth.cluster.node.datasets.program import NodeDatasets
from hearth.data.loader import Loader
from hearth.data.options import LoaderOptions


def partitions_of(*counts, **columns):
    """Partitions with these row counts. "id" numbers all rows; `columns` are computed from it."""
    made, first = [], 0
    for count in counts:
        ids = range(first, first + count)
        values = {"id": pa.array(ids, pa.int64())}
        values |= {name: [make(i) for i in ids] for name, make in columns.items()}
        made.append(pa.record_batch(values))
        first += count
    return made


def rank_dataset(partitions, rank, world, totals=True, identity=""):
    """The dataset of one of `world` ranks; partitions are assigned to the ranks round-robin."""
    nodes = NodeDatasets(["train"])
    named = {"dataset": "train"}
    owners = [number % world for number in range(len(partitions))]
    plan = {"op": "dataset_plan", "rank": rank, "world": world, "identity": identity}
    nodes.handle({**named, **plan, "owners": owners}, [])
    rows, hashes = [], []
    for number, batch in enumerate(partitions):
        with tempfile.TemporaryFile() as file:
            writer = PartitionWriter(os.dup(file.fileno()))
            size, count = writer.write(batch)
            digest = f"{writer.hash:016x}"
            writer.close()
            rows.append(count)
            hashes.append(digest)
            if owners[number] == rank:
                grown = {"partition": number, "attempt": 1, "bytes": size, "rows": count}
                message = {"op": "dataset_rows", **named, **grown, "hash": digest}
                nodes.handle(message, [os.dup(file.fileno())])
    if totals:
        nodes.handle({"op": "dataset_totals", **named, "rows": rows, "hashes": hashes}, [])
    return nodes.open("train")


def loaders(partitions, world, batch_size=8, **options):
    """Creates the loader of each rank."""
    made = LoaderOptions(batch_size, **options)
    return [Loader(rank_dataset(partitions, rank, world), made) for rank in range(world)]
