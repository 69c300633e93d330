"""The rows that the programs count: each rank's share of a Parquet file, by a feed."""

import sys

import torch
from torch.utils.data import IterableDataset

from hearth.torch.feeds import FileFeed

ROWS = 256


def batches(batch_size=8):
    """The dataset of ctx.get_file_feed(path).as_iterable_dataset(batch_size)."""
    share = torch.distributed.get_rank(), torch.distributed.get_world_size()
    return FileFeed(sys.argv[1], (), share, epochs=1).as_iterable_dataset(batch_size)


class Rows(IterableDataset):
    """A dataset of a user's own on top: row by row."""

    def __iter__(self):
        for batch in batches():
            for x, labels in zip(batch["x"], batch["labels"], strict=True):
                yield {"x": x, "labels": labels}


def check_all_used(ids):
    """All ranks call it with the ids of the rows that they have used."""
    everybodys = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(everybodys, [int(i) for i in ids])
    used = sorted(i for ids in everybodys for i in ids)
    assert used == list(range(ROWS)), f"{len(used)} rows, {len(set(used))} of them different"


def check_refused(read):
    """Every rank is refused rows by what would drop some."""
    try:
        read()
    except RuntimeError as error:
        assert "would drop rows" in str(error), error
    else:
        raise AssertionError("rows were dropped without an error")
