"""transformers.Trainer with a dataset's loader: each epoch has all rows, and resuming continues at
the next row.
"""

import sys

import torch
from dataset_rows import STEPS, check_epoch, rows_loader
from feed_rows import check_refused
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, TrainingArguments

EPOCHS = 2


class Regression(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.taken = []

    def forward(self, x, labels):
        self.taken.append(labels.tolist())
        return {"loss": torch.nn.functional.mse_loss(self.layer(x[:, None])[:, 0], x)}


class DatasetTrainer(Trainer):
    def get_train_dataloader(self):
        return DataLoader(self.train_dataset, batch_size=None)


class SetEpoch(TrainerCallback):
    """Sets the loader to the checkpoint's epoch, whose first batches Trainer then skips."""

    def on_epoch_begin(self, args, state, control, train_dataloader=None, **_):
        train_dataloader.dataset.set_epoch(int(state.epoch))


def trainer(kind, folder, save_steps, **options):
    arguments = TrainingArguments(
        folder,
        use_cpu=True,
        num_train_epochs=EPOCHS,
        learning_rate=1e-6,
        report_to=[],
        save_strategy="steps",
        save_steps=save_steps,
        disable_tqdm=True,
        **options,
    )
    loader = rows_loader()
    return kind(Regression(), arguments, train_dataset=loader, callbacks=[SetEpoch()])


def main():
    torch.distributed.init_process_group("hearth")
    folder = sys.argv[2]
    sharded = {"accelerator_config": {"dispatch_batches": False}}
    for options in ({}, sharded):
        check_refused(trainer(Trainer, folder, 1000, **options).train)
    whole = trainer(DatasetTrainer, folder, 11)
    whole.train()
    taken = whole.accelerator.unwrap_model(whole.model).taken
    assert len(taken) == whole.state.global_step == EPOCHS * STEPS, len(taken)
    for epoch in range(EPOCHS):
        repeated = whole.train_dataset.repeated_rows // EPOCHS
        check_epoch(taken[epoch * STEPS : (epoch + 1) * STEPS], repeated)
    for step in (11, 22):
        resumed = trainer(DatasetTrainer, folder, 1000)
        resumed.train(resume_from_checkpoint=f"{folder}/checkpoint-{step}")
        again = resumed.accelerator.unwrap_model(resumed.model).taken
        assert again == taken[step:], (step, again[:1], taken[step])
    print(f"rank {torch.distributed.get_rank()}: all rows, resumed at steps 11 and 22")


if __name__ == "__main__":
    main()
