"""Each micro-batch of a stream trains a model some steps further, from the last checkpoint on.

python examples/torch/stream_tuning.py --rows /tmp/arriving --state /tmp/stream-tuning
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from types import SimpleNamespace

from hearth.spark import session as spark_session
from hearth.torch import TorchCluster


def main_fun(args, ctx):
    """Trains on one micro-batch.

    The checkpoint's step is the number of micro-batches trained so far.
    """
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group(ctx.backend)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.rate)
    done = ctx.restore(model=model, optimizer=optimizer) or 0
    if done <= args.batch:  # not if Spark repeats a micro-batch after a failure
        rows = ctx.dataset("batch", 16, ("x", "y"))
        for _ in range(args.epochs):
            for x, y in rows:
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(model(x)[:, 0], y).backward()
                optimizer.step()
        done = args.batch + 1
        ctx.checkpoint(done, model=model, optimizer=optimizer)
    if ctx.rank == 0:
        with open(args.report, "w", encoding="utf-8") as file:
            json.dump({"batches": done, "weight": model.module.weight[0].tolist()}, file)
    dist.destroy_process_group()


def train(args, frame, batch: int) -> None:
    """The function for foreachBatch()."""
    if frame.isEmpty():
        return
    given = SimpleNamespace(**vars(args), batch=batch)
    datasets = {"batch": frame}
    folder = f"{args.state}/checkpoints"
    TorchCluster.run(
        frame.sparkSession, main_fun, given, args.workers, datasets=datasets, checkpoint_dir=folder
    ).shutdown()


def run(spark, args) -> dict:
    """Trains on all existing files, one per micro-batch; returns the last result."""
    rows = spark.readStream.schema("x array<float>, y float").option("maxFilesPerTrigger", 1)
    stream = rows.parquet(args.rows).writeStream.foreachBatch(partial(train, args))
    stream = stream.option("checkpointLocation", f"{args.state}/stream")
    stream.trigger(availableNow=True).start().awaitTermination()
    with open(args.report, encoding="utf-8") as file:
        return json.load(file)


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", required=True, help="folder where Parquet files arrive")
    parser.add_argument("--state", required=True, help="folder of checkpoints, of both kinds")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rate", type=float, default=0.2)
    args = parser.parse_args(argv)
    args.report = f"{args.state}/report.json"
    return args


if __name__ == "__main__":
    session = spark_session.start("stream-tuning", executors=2)
    print(run(session, parse()))
