"""Refuses frameworks that would shard a feed or a dataset, which is one rank's share already."""

from __future__ import annotations

import sys
from types import FrameType

# By module: the classes that iterate a dataset and keep a part of it for each rank.
_SHARDING = {
    "accelerate.data_loader": ("DataLoaderDispatcher", "IterableDatasetShard"),
    "transformers.trainer_pt_utils": ("IterableDatasetShard",),
}


def check_whole() -> None:
    """Raises RuntimeError if a caller of this function distributes among the ranks what it reads.

    Wrappers of a dataset may lie between, so the call stack is searched.
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
            raise RuntimeError(
                f"{module}.{owner} would drop rows: it distributes among the ranks what one of "
                "them reads, but a dataset or a feed gives each rank its own share of the rows "
                "already. Leave the DataLoader out of Accelerator.prepare(); for "
                "transformers.Trainer, override get_train_dataloader() to return "
                "DataLoader(self.train_dataset, batch_size=None) (docs/pytorch.md)"
            )
        frame = frame.f_back
