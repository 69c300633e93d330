"""The feed whose rows the programs count: each rank's share of a Parquet file."""

import sys

import torch
from torch.utils.data import IterableDataset

from hearth.torch.feeds import FileFeed

ROWS = 256


def batches(batch_size=8):
    """The dataset that ctx.get_file_feed(path).as_iterable_dataset(batch_size) returns."""
    share = torch.distributed.get_rank(), torch.distributed.get_world_size()
    return FileFeed(sys.argv[1], (), share, epochs=1).as_iterable_dataset(batch_size)


class Rows(IterableDataset):
    """A user's dataset that wraps the feed's dataset and yields single rows."""

    def __iter__(self):
        for batch in batches():
            for x, labels in zip(batch["x"], batch["labels"], strict=True):
                yield {"x": x, "labels": labels}


def check_all_used(ids):
    """Checks that each row was used once; each rank calls it with the ids of its rows."""
    everybodys = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(everybodys, [int(i) for i in ids])
    used = sorted(i for ids in everybodys for i in ids)
    assert used == list(range(ROWS)), f"{len(used)} rows, {len(set(used))} of them different"


def check_refused(read):
    """Checks that a reader that would drop rows gets an error."""
    try:
        read()
    except RuntimeError as error:
        assert "would drop rows" in str(error), error
    else:
        raise AssertionError("rows were dropped without an error")
