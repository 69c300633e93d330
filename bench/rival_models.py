"""The DDP programs of rivals.py: a model per kind of rows, trained step by step.

A program joins the process group of its launcher, or creates one: with "hearth" if Hearth started
the ranks, else with gloo. The label of a row is its id modulo 10.
"""

from __future__ import annotations

import io
import os
from contextlib import AbstractContextManager
from typing import Any

from data_rows import TOKENS

CLASSES = 10
SIDE = 64  # side of an image, after decoding and resizing


class Training:
    """A model under DDP and its optimizer. One thread uses it."""

    def __init__(self, job: dict[str, Any]):
        """`job`: with "model" ("mlp", "cnn" or "transformer") and "contender"."""
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        if not dist.is_initialized():
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
            dist.init_process_group("hearth" if job["contender"] == "hearth" else "gloo")
        torch.manual_seed(0)
        make, self._prepare = {
            "mlp": (mlp, lambda x: x),
            "cnn": (cnn, decoded),
            "transformer": (transformer, lambda x: x),
        }[job["model"]]
        self._model = DistributedDataParallel(make(job["width"]))
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01)

    def epoch(self) -> AbstractContextManager[Any]:
        """Wraps the steps of an epoch, whose number may differ between ranks."""
        return self._model.join()

    def step(self, ids: Any, x: Any) -> None:
        from torch.nn.functional import cross_entropy

        self._optimizer.zero_grad()
        cross_entropy(self._model(self._prepare(x)), ids % CLASSES).backward()
        self._optimizer.step()


def decoded(x: Any) -> Any:
    """JPEGs, a list of bytes or rows of a uint8 tensor, as float32 [n, 3, SIDE, SIDE] in [0, 1]."""
    import numpy as np
    import torch
    from PIL import Image

    rows = x if isinstance(x, list) else [row.numpy().tobytes() for row in x]
    found = np.empty((len(rows), SIDE, SIDE, 3), np.uint8)
    for number, row in enumerate(rows):
        try:
            image = Image.open(io.BytesIO(row))
        except OSError:  # `bare` has zeros
            found[number] = 0
            continue
        found[number] = image.convert("RGB").resize((SIDE, SIDE))
    return torch.from_numpy(found).permute(0, 3, 1, 2).float() / 255


def mlp(width: int) -> Any:
    from torch import nn

    return nn.Sequential(nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, CLASSES))


def cnn(width: int) -> Any:
    from torch import nn

    layers: list[Any] = []
    for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * (SIDE // 8) ** 2, CLASSES))


def transformer(width: int) -> Any:
    """Six encoder layers over sequences of `width` tokens; classifies the mean of the outputs."""
    import torch
    from torch import nn

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(TOKENS, 64)
            self.positions = nn.Parameter(torch.zeros(width, 64))
            layer = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 6)
            self.head = nn.Linear(64, CLASSES)

        def forward(self, x: Any) -> Any:
            return self.head(self.layers(self.tokens(x) + self.positions).mean(1))

    return Classifier()
