"""Refuses frameworks that would shard a feed or a dataset, which is already one rank's share."""

from __future__ import annotations

import sys
from types import FrameType

from hearth.errors import invalid

# Classes, by module, that iterate over a dataset and keep only a part of it on each rank.
_SHARDING = {
    "accelerate.data_loader": ("DataLoaderDispatcher", "IterableDatasetShard"),
    "transformers.trainer_pt_utils": ("IterableDatasetShard",),
}


def check_batches_are_kept(caller: FrameType) -> None:
    """Raises RuntimeError if `caller`, which iterates a loader, is a torch DataLoader that would
    stack its batches."""
    from torch.utils.data import default_collate

    if caller.f_code.co_qualname != "_IterableDatasetFetcher.__init__":
        return
    called = caller.f_locals
    if called.get("auto_collation") and called.get("collate_fn") is default_collate:
        raise invalid(
            "a DataLoader with a batch_size would stack the batches of ctx.dataset() to batches of "
            "batches: use DataLoader(loader, batch_size=None), or the loader itself; ctx.dataset() "
            "sets the batch size"
        )


def check_whole() -> None:
    """Raises RuntimeError if a caller of this function shards the data that it reads.

    Searches the whole call stack, because datasets may be wrapped.
    """
    if not _SHARDING.keys() & sys.modules.keys():
        return
    import torch.distributed as dist

    if not dist.is_initialized() or dist.get_world_size() == 1:
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        owner = frame.f_code.co_qualname.split(".")[0]
        if owner in _SHARDING.get(module, ()):
            raise invalid(
                f"{module}.{owner} would drop rows: it shards the data that it reads, but a "
                "dataset or a feed already yields only the rank's own share of the rows. Leave the "
                "DataLoader out of Accelerator.prepare(); for "
                "transformers.Trainer, override get_train_dataloader() to return "
                "DataLoader(self.train_dataset, batch_size=None) (docs/pytorch.md)"
            )
        frame = frame.f_back
