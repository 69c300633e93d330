"""transformers.Trainer is refused if it would shard a feed's rows again; else all are used."""

import tempfile

import torch
from feed_rows import ROWS, Rows, batches, check_all_used, check_refused
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments


class Regression(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.ids = []

    def forward(self, x, labels):
        self.ids += labels.tolist()
        return {"loss": torch.nn.functional.mse_loss(self.layer(x[:, None])[:, 0], x)}


class FeedTrainer(Trainer):
    def get_train_dataloader(self):
        return DataLoader(self.train_dataset, batch_size=None)


def trainer(kind, dataset, folder, **options):
    arguments = TrainingArguments(
        folder,
        use_cpu=True,
        max_steps=ROWS // 16,
        per_device_train_batch_size=8,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        **options,
    )
    return kind(Regression(), arguments, train_dataset=dataset)


def main():
    torch.distributed.init_process_group("hearth")
    with tempfile.TemporaryDirectory() as folder:
        sharded = {"accelerator_config": {"dispatch_batches": False}}
        check_refused(trainer(Trainer, Rows(), folder, **sharded).train)
        check_refused(trainer(Trainer, batches(), folder).train)
        whole = trainer(FeedTrainer, batches(), folder)
        whole.train()
    ids = whole.accelerator.unwrap_model(whole.model).ids
    check_all_used(ids)
    print(f"rank {torch.distributed.get_rank()}: {len(ids)} rows")


if __name__ == "__main__":
    main()
