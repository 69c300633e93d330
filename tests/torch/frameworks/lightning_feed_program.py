"""Lightning leaves a feed's iterable datasets as they are: all rows are used."""

import lightning
import torch
from feed_rows import Rows, batches, check_all_used
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader


class Regression(lightning.LightningModule):
    def __init__(self, make_loader):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.make_loader = make_loader
        self.ids = []

    def train_dataloader(self):
        return self.make_loader()  # each rank calls it, with the process group initialized

    def training_step(self, batch, batch_index):
        self.ids += batch["labels"].tolist()
        return torch.nn.functional.mse_loss(self.layer(batch["x"][:, None])[:, 0], batch["x"])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    for make_loader in (
        lambda: DataLoader(batches(), batch_size=None),
        lambda: DataLoader(Rows(), 8),
    ):
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=1,
            num_nodes=2,
            strategy=DDPStrategy(process_group_backend="hearth"),
            max_epochs=1,
            enable_progress_bar=False,
            enable_model_summary=False,
            logger=False,
            enable_checkpointing=False,
        )
        model = Regression(make_loader)
        trainer.fit(model)
        check_all_used(model.ids)
    print(f"rank {trainer.global_rank} of {trainer.world_size}: {len(model.ids)} rows")


if __name__ == "__main__":
    main()
