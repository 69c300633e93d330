"""A typical Lightning program: a linear regression by DDP on two processes."""

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, TensorDataset


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, batch_index):
        inputs, targets = batch
        loss = torch.nn.functional.mse_loss(self.layer(inputs), targets)
        self.log("loss", loss, sync_dist=True)
        return loss

    def validation_step(self, batch, batch_index):
        inputs, targets = batch
        error = torch.nn.functional.mse_loss(self.layer(inputs), targets)
        self.log("error", error, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    lightning.seed_everything(1)
    inputs = torch.randn(256, 4)
    targets = inputs @ torch.tensor([[1.0], [-2.0], [3.0], [0.5]])
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=16)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        num_nodes=2,
        strategy=DDPStrategy(process_group_backend="hearth"),
        max_epochs=10,
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
        enable_checkpointing=False,
    )
    model = Regression()
    trainer.fit(model, loader, loader)
    backend = torch.distributed.get_backend()
    error = float(trainer.callback_metrics["error"])
    print(f"rank {trainer.global_rank} of {trainer.world_size} by {backend}: error {error:.6f}")
    assert backend == "hearth"
    assert error < 1e-3


if __name__ == "__main__":
    main()
