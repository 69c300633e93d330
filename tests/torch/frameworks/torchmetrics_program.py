"""torchmetrics in TorchEstimator's epochs: metrics cover all ranks' rows, each counted once."""

import math

import torch
import torchmetrics
from dataset_rows import ROWS, rows_loader
from torch import nn

from hearth.ml.torch_training import Trainer
from hearth.ml.training_spec import TrainingCode, TrainingSpec


class Same(nn.Module):
    """Returns twice its argument, so that the error of a row is x."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return 2 * x * self.factor


def loss(outputs, labels):
    return nn.functional.mse_loss(outputs, labels.float())


def main():
    torch.distributed.init_process_group("hearth")
    metrics = [torchmetrics.MeanSquaredError(), torchmetrics.MeanAbsoluteError]
    code = TrainingCode(Same, loss, torch.optim.SGD, metrics=metrics)
    spec = TrainingSpec(("x",), ("labels",), learning_rate=0.0, epochs=1, batch_size=8)
    trainer = Trainer(code, spec, torch.device("cpu"))
    trainer.fit(rows_loader(uneven="weight"))
    row = trainer.history[0]
    squares = sum(x * x for x in range(ROWS)) / ROWS
    assert math.isclose(row["meansquarederror"], squares, rel_tol=1e-5), row
    assert math.isclose(row["meanabsoluteerror"], (ROWS - 1) / 2, rel_tol=1e-5), row
    print(f"rank {torch.distributed.get_rank()}: {row}")


if __name__ == "__main__":
    main()
