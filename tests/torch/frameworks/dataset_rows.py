"""The loaders whose rows the programs count: each rank's partitions of a dataset, as ctx.dataset()
returns them. The ranks' shares of the 250 rows differ in size.
"""

import itertools

import pyarrow as pa
import torch
from dataset_ranks import rank_dataset

from hearth.data.options import LoaderOptions
from hearth.torch.loader import TensorLoader

COUNTS = (70, 50, 60, 70)  # rank 0 has 130 rows, rank 1 has 120
ROWS = sum(COUNTS)
BATCH = 8
STEPS = 17  # rank 0 needs 17; rank 1 repeats 10 rows


def rows_loader(**options):
    """A loader like the one that ctx.dataset("train", 8) returns."""
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    ends = list(itertools.accumulate(COUNTS, initial=0))
    partitions = [
        pa.record_batch({"labels": range(a, b), "x": pa.array(range(a, b), pa.float32())})
        for a, b in itertools.pairwise(ends)
    ]
    return TensorLoader(rank_dataset(partitions, rank, world), LoaderOptions(BATCH, **options))


def check_epoch(batches, repeated):
    """Checks an epoch; each rank calls it with its batches' ids and its number of repeated rows.

    Each row must arrive once, besides the repeated ones, and all ranks must take the same number of
    steps.
    """
    everybodys = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(everybodys, (batches, repeated))
    steps = [len(batches) for batches, _ in everybodys]
    assert steps == [STEPS] * len(everybodys), f"steps of the ranks: {steps}"
    given = [i for batches, _ in everybodys for batch in batches for i in batch]
    assert set(given) == set(range(ROWS)), f"{len(set(given))} of {ROWS} rows"
    assert len(given) == ROWS + sum(repeated for _, repeated in everybodys), len(given)
