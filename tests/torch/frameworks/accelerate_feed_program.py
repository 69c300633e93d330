"""Accelerate is refused if it would shard a feed's rows again; else all rows are used."""

from functools import partial

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from feed_rows import Rows, batches, check_all_used, check_refused
from torch.utils.data import DataLoader


def main():
    torch.distributed.init_process_group("hearth")
    for dispatch in (None, True, False):
        config = DataLoaderConfiguration(dispatch_batches=dispatch)
        accelerator = Accelerator(cpu=True, dataloader_config=config)
        loader = DataLoader(batches(), batch_size=1, collate_fn=lambda several: several[0])
        prepared = accelerator.prepare(loader)
        check_refused(partial(list, prepared))
    check_refused(partial(list, accelerator.prepare(DataLoader(Rows(), batch_size=8))))
    model, ids = accelerator.prepare(torch.nn.Linear(1, 1)), []
    for batch in DataLoader(Rows(), batch_size=8):
        accelerator.backward(model(batch["x"][:, None]).mean())
        ids += batch["labels"].tolist()
    check_all_used(ids)
    print(f"rank {accelerator.process_index} of {accelerator.num_processes}: {len(ids)} rows")


if __name__ == "__main__":
    main()
