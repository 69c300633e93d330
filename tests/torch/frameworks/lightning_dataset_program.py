"""Lightning leaves a dataset's loader as it is: each epoch has all rows, and fit() from a
checkpoint continues with exactly the remaining ones.
"""

import sys
from pathlib import Path

import lightning
import torch
from dataset_rows import STEPS, check_epoch, rows_loader
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.strategies import DDPStrategy

EPOCHS = 3
# Steps after which checkpoints are saved: within the first and a later epoch, and at an epoch's
# end.
SAVED = (5, STEPS, STEPS + 6, 2 * STEPS)


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.taken = []

    def train_dataloader(self):
        self.loader = rows_loader()  # like ctx.dataset("train", 8)
        return self.loader

    def training_step(self, batch, batch_index):
        self.taken.append(batch["labels"].tolist())
        return torch.nn.functional.mse_loss(self.layer(batch["x"][:, None])[:, 0], batch["x"])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-6)


def fit(callbacks=(), checkpoint=None):
    """Returns the trained module."""
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        num_nodes=2,
        strategy=DDPStrategy(process_group_backend="hearth"),
        max_epochs=EPOCHS,
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
        callbacks=list(callbacks),
        enable_checkpointing=bool(callbacks),
    )
    module = Regression()
    trainer.fit(module, ckpt_path=checkpoint)
    assert trainer.global_step == EPOCHS * STEPS, trainer.global_step
    return module


class SaveSteps(lightning.Callback):
    """Saves checkpoints after the steps SAVED."""

    def __init__(self, folder):
        self.folder = folder

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step in SAVED:
            trainer.save_checkpoint(self.folder / f"step-{trainer.global_step}.ckpt")


def main():
    folder = Path(sys.argv[2])
    at_ends = ModelCheckpoint(folder, "epoch-{epoch}", every_n_epochs=1, save_top_k=-1)
    whole = fit([SaveSteps(folder), at_ends])
    assert whole.loader.repeated_rows == EPOCHS * (10 if torch.distributed.get_rank() else 0)
    for epoch in range(EPOCHS):
        taken = whole.taken[epoch * STEPS : (epoch + 1) * STEPS]
        check_epoch(taken, whole.loader.repeated_rows // EPOCHS)
    saved = {f"step-{step}": step for step in SAVED}
    saved |= {"epoch-epoch=0": STEPS, "epoch-epoch=1": 2 * STEPS}
    for name, step in saved.items():
        resumed = fit(checkpoint=folder / f"{name}.ckpt")
        assert resumed.taken == whole.taken[step:], f"other batches from {name}.ckpt on"
        assert torch.equal(resumed.layer.weight, whole.layer.weight), f"another model: {name}"
    print(f"rank {torch.distributed.get_rank()}: all rows in {EPOCHS} epochs, resumed exactly")


if __name__ == "__main__":
    main()
