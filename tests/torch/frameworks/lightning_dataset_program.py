"""A dataset's loader in Lightning, which leaves it whole: all rows in each epoch."""

import lightning
import torch
from dataset_rows import STEPS, check_epoch, rows_loader
from lightning.pytorch.strategies import DDPStrategy

EPOCHS = 3


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.taken = []

    def train_dataloader(self):
        self.loader = rows_loader()  # ctx.dataset("train", 8)
        return self.loader

    def training_step(self, batch, batch_index):
        self.taken.append(batch["labels"].tolist())
        return torch.nn.functional.mse_loss(self.layer(batch["x"][:, None])[:, 0], batch["x"])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-6)


def fit():
    """The module that was trained."""
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        num_nodes=2,
        strategy=DDPStrategy(process_group_backend="hearth"),
        max_epochs=EPOCHS,
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
        enable_checkpointing=False,
    )
    module = Regression()
    trainer.fit(module)
    assert trainer.global_step == EPOCHS * STEPS, trainer.global_step
    return module


def main():
    whole = fit()
    assert whole.loader.repeated_rows == EPOCHS * (10 if torch.distributed.get_rank() else 0)
    batches = whole.taken
    for epoch in range(EPOCHS):
        taken = batches[epoch * STEPS : (epoch + 1) * STEPS]
        check_epoch(taken, whole.loader.repeated_rows // EPOCHS)
    print(f"rank {torch.distributed.get_rank()}: all rows in {EPOCHS} epochs")


if __name__ == "__main__":
    main()
