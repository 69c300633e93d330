"""Freezes a trained trunk and trains a new last layer, for JPEG files of other classes.

The trunk is torchvision's ResNet-18 if torchvision is installed, otherwise two convolutions.
python examples/torch/jpeg_tuning.py --trunk /tmp/trunk.pt --report /tmp/jpeg_tuning.json
"""

from __future__ import annotations

import argparse
import io
import json
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context

import numpy as np

from hearth.data.image import image
from hearth.spark import session as spark_session
from hearth.torch import TorchCluster

SIZE = 32


def main_fun(args, ctx):
    """The trunk is read from the file; only the last layer is trained."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group(ctx.backend)
    torch.manual_seed(0)
    model = make_model(args.torchvision)
    trunk = torch.load(args.trunk)
    model[0].load_state_dict(trunk)
    model[0].requires_grad_(False).eval()  # its BatchNorm layers keep their averages
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model[1].parameters(), lr=args.rate)
    seen, whole = image(size=SIZE, crop=None, flip=False, to="float32"), ("jpeg", "label")
    train = ctx.dataset("train", args.batch_size, whole, transforms={"jpeg": seen})
    for _ in range(args.epochs):
        for pixels, label in train:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(parallel(pixels), label).backward()
            optimizer.step()

    right = rows = 0
    for pixels, label in ctx.dataset("test", 64, whole, False, transforms={"jpeg": seen}):
        right += int((model(pixels).argmax(1) == label).sum())
        rows += len(label)
    found = ctx.reduce_metrics({"accuracy": right / rows}, weight=rows)
    state = model[0].state_dict()
    found["trunk"] = type(model[0]).__name__
    found["trunk_is_kept"] = all(torch.equal(state[name], trunk[name]) for name in trunk)
    if ctx.rank == 0:
        with open(args.report, "w", encoding="utf-8") as file:
            json.dump(found, file)
    dist.destroy_process_group()


def make_model(torchvision: bool):
    """A trunk, and a last layer for five classes."""
    from torch import nn

    if torchvision:
        from torchvision.models import resnet18

        trunk = resnet18()  # weights="DEFAULT" would download ImageNet's weights
        width, trunk.fc = trunk.fc.in_features, nn.Identity()
        return nn.Sequential(trunk, nn.Linear(width, 5))
    trunk = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
    )
    return nn.Sequential(trunk, nn.Linear(32 * (SIZE // 4) ** 2, 5))


def digits():
    """Returns scikit-learn's digits as encoded JPEG files, and the digit of each."""
    from PIL import Image
    from sklearn.datasets import load_digits

    data = load_digits()
    files = []
    for pixels in (data.images * 15).astype(np.uint8):
        file = io.BytesIO()
        Image.fromarray(pixels).resize((32, 32)).save(file, "JPEG", quality=90)
        files.append(file.getvalue())
    return files, data.target


def train_trunk(files, labels, path: str, torchvision: bool) -> None:
    """Trains a stand-in for a published model, on the digits 0 to 4."""
    import torch

    torch.manual_seed(0)
    model = make_model(torchvision)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    decode = image(size=SIZE, crop=None, flip=False, to="float32")
    pixels, _ = decode.apply(files, seeds=np.arange(len(files), dtype=np.uint64))
    pixels, labels = torch.from_numpy(pixels), torch.from_numpy(labels)
    for _ in range(2 if torchvision else 4):
        for rows in torch.randperm(len(labels)).split(32):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(pixels[rows]), labels[rows]).backward()
            optimizer.step()
    torch.save(model[0].state_dict(), path)


def run(spark, args) -> dict:
    """Tunes the trunk's last layer for the digits 5 to 9; returns the held-out accuracy."""
    files, labels = digits()
    low = labels < 5
    published = [file for file, each in zip(files, low, strict=True) if each]
    # A process that has loaded TensorFlow cannot load PyTorch's compiler, which optimizers import.
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        given = (published, labels[low], args.trunk, args.torchvision)
        process.submit(train_trunk, *given).result()
    rows = [(f, int(d) - 5) for f, d in zip(files, labels, strict=True) if d >= 5]
    test, train = rows[::5], [row for number, row in enumerate(rows) if number % 5]
    schema = "jpeg binary, label bigint"
    datasets = {"train": spark.createDataFrame(train, schema)}
    datasets["test"] = spark.createDataFrame(test, schema)
    TorchCluster.run(spark, main_fun, args, args.workers, datasets=datasets).shutdown()
    with open(args.report, encoding="utf-8") as file:
        return json.load(file)


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trunk", required=True, help="file for the trunk's state_dict")
    parser.add_argument("--report", required=True, help="file for what was found")
    parser.add_argument(
        "--torchvision",
        action=argparse.BooleanOptionalAction,
        default=find_spec("torchvision") is not None,
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--rate", type=float, default=5e-3)
    return parser.parse_args(argv)


if __name__ == "__main__":
    session = spark_session.start("jpeg-tuning", executors=2)
    print(run(session, parse()))
