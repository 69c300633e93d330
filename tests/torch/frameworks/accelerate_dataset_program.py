"""Accelerate leaves a dataset's loader as it is, and saves its position in checkpoints."""

import sys
from functools import partial

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from dataset_rows import check_epoch, rows_loader
from feed_rows import check_refused
from torch.utils.data import DataLoader


def train(accelerator, loader, steps):
    """Trains for some steps; returns the ids of each batch."""
    model, taken = accelerator.prepare(torch.nn.Linear(1, 1)), []
    for batch in loader:
        accelerator.backward(model(batch["x"][:, None]).mean())
        taken.append(batch["labels"].tolist())
        if len(taken) == steps:
            break
    return taken


def check_both_dispatch_modes():
    for dispatch in (None, True, False):
        config = DataLoaderConfiguration(dispatch_batches=dispatch)
        accelerator = Accelerator(cpu=True, dataloader_config=config)
        loader = rows_loader()
        assert accelerator.prepare(loader) is loader
        for _ in range(2):
            before = loader.repeated_rows
            check_epoch(train(accelerator, loader, 1000), loader.repeated_rows - before)
        if dispatch is not False:  # else Accelerate fails: it multiplies batch_size
            wrapped = accelerator.prepare(DataLoader(rows_loader(), batch_size=None))
            check_refused(partial(list, wrapped))


def check_resumed(folder):
    """Checks the second epoch's batches when it is resumed from a checkpoint after batch 5."""
    found = []
    for restored in (False, True):
        accelerator = Accelerator(cpu=True)
        loader = accelerator.prepare(rows_loader())
        accelerator.register_for_checkpointing(loader)
        if restored:
            accelerator.load_state(folder)
        else:
            loader.set_epoch(1)
            found.append(train(accelerator, loader, 5))
            accelerator.save_state(folder)
            loader.load_state_dict(loader.state_dict())  # continue after the break
        found.append(train(accelerator, loader, 1000))
    begun, unbroken, resumed = found
    assert resumed == unbroken
    check_epoch(begun + resumed, loader.repeated_rows)


def main():
    torch.distributed.init_process_group("hearth")
    check_both_dispatch_modes()
    check_resumed(sys.argv[2])
    print(f"rank {torch.distributed.get_rank()}: all rows, resumed at the sixth batch")


if __name__ == "__main__":
    main()
