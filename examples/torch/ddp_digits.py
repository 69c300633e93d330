"""A DataFrame feeds DistributedDataParallel on two executors; rank 0 saves the model.

python examples/torch/ddp_digits.py --model /tmp/digits.pt
"""

from __future__ import annotations

import argparse

import numpy as np
import pyarrow as pa
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hearth.spark import session as spark_session
from hearth.torch import TorchCluster


def main_fun(args, ctx):
    """Runs in the node's process; Spark sends each row `epochs` times."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    from hearth.torch import in_step

    dist.init_process_group(ctx.backend)
    torch.manual_seed(0)
    model = make_model().to(ctx.device)
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(parallel.parameters(), lr=3e-3)
    batches = ctx.get_data_feed().as_iterable_dataset(args.batch_size, ("image", "label"))
    for (image, label), weight in in_step(batches):
        optimizer.zero_grad()
        scores = parallel(image.to(ctx.device))
        loss = torch.nn.functional.cross_entropy(scores, label.to(ctx.device))
        (loss * weight).backward()
        optimizer.step()
    if ctx.rank == 0:
        torch.save(model.state_dict(), args.model)
    dist.destroy_process_group()


def make_model():
    from torch import nn

    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def load() -> list[np.ndarray]:
    """Returns x_train, x_test, y_train, y_test: x float32 [n, 64] in [0, 1], y int64 [n]."""
    digits = load_digits()
    pixels = (digits.data / 16).astype(np.float32)
    return train_test_split(pixels, digits.target.astype(np.int64), random_state=0)


def frame(spark, pixels: np.ndarray, labels: np.ndarray):
    """A DataFrame with the columns `image` (array<float>) and `label` (bigint)."""
    lists = pa.FixedSizeListArray.from_arrays(pa.array(pixels.reshape(-1)), pixels.shape[1])
    table = pa.table({"image": lists.cast(pa.list_(pa.float32())), "label": labels})
    return spark.createDataFrame(table)


def run(spark, args) -> float:
    """Trains on the executors; returns the accuracy on the held-out digits."""
    x_train, x_test, y_train, y_test = load()
    with TorchCluster.run(spark, main_fun, args, workers=args.workers) as cluster:
        cluster.train(frame(spark, x_train, y_train).repartition(4), epochs=args.epochs)
    model = make_model()
    model.load_state_dict(torch.load(args.model, map_location="cpu"))
    found = model(torch.from_numpy(x_test)).argmax(dim=1)
    return (found == torch.from_numpy(y_test)).float().mean().item()


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="file for the model's state_dict")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch_size", type=int, default=32)
    return parser.parse_args(argv)


if __name__ == "__main__":
    session = spark_session.start("digits-torch", executors=2)
    print(f"accuracy: {run(session, parse()):.3f}")
