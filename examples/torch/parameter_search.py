"""Several trainings at a time in one Spark session; the best one wins.

python examples/torch/parameter_search.py
"""

from __future__ import annotations

import argparse
import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from hearth.spark import session as spark_session
from hearth.torch import TorchCluster


def main_fun(args, ctx):
    """One trial: trains with its rate and leaves the held-out loss in a file."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group(ctx.backend)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.rate)
    rows = ctx.dataset("train", 16, ("x", "y"))
    for _ in range(args.epochs):
        for x, y in rows:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x)[:, 0], y).backward()
            optimizer.step()
    loss = count = 0
    with torch.no_grad():
        for x, y in ctx.dataset("test", 64, ("x", "y"), False):
            loss += torch.nn.functional.mse_loss(model(x)[:, 0], y, reduction="sum")
            count += len(y)
    found = ctx.reduce_metrics({"loss": loss / count}, weight=count)
    if ctx.rank == 0:
        with open(args.report, "w", encoding="utf-8") as file:
            json.dump(found, file)
    dist.destroy_process_group()


def frames(spark, rows: int):
    """Points of a plane, for training and held out."""
    drawn = spark.range(0, rows, 1, 2).selectExpr(
        "id", "float(pmod(hash(id, 1), 100) / 50 - 1) a", "float(pmod(hash(id, 2), 100) / 50 - 1) b"
    )
    whole = drawn.selectExpr("id", "array(a, b) x", "float(3 * a - 2 * b + 1) y")
    return whole.where("id % 5 > 0"), whole.where("id % 5 = 0")


def trial(spark, args, datasets, rate: float) -> float:
    """The loss of a training with this rate. Any thread may call it."""
    with tempfile.TemporaryDirectory() as folder:
        given = SimpleNamespace(rate=rate, epochs=args.epochs, report=f"{folder}/loss.json")
        TorchCluster.run(spark, main_fun, given, args.workers, datasets=datasets).shutdown()
        with open(given.report, encoding="utf-8") as file:
            return json.load(file)["loss"]


def run(spark, args) -> dict[float, float]:
    """The loss of each rate, from the least; `args.at_once` trainings run at a time."""
    train, test = frames(spark, args.rows)
    datasets = {"train": train, "test": test}
    with ThreadPoolExecutor(args.at_once) as threads:
        losses = threads.map(lambda rate: trial(spark, args, datasets, rate), args.rates)
        found = dict(zip(args.rates, losses, strict=True))
    return dict(sorted(found.items(), key=lambda each: each[1]))


def search(spark, args, trials: int) -> float:
    """The best rate by Optuna, which chooses each trial's from the losses of those before."""
    import optuna

    train, test = frames(spark, args.rows)
    datasets = {"train": train, "test": test}

    def objective(one):
        return trial(spark, args, datasets, one.suggest_float("rate", 1e-4, 1, log=True))

    study = optuna.create_study()
    study.optimize(objective, n_trials=trials, n_jobs=args.at_once)
    return study.best_params["rate"]


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.0001, 0.1, 0.003])
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--workers", type=int, default=1, help="of each training")
    parser.add_argument("--at_once", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    return parser.parse_args(argv)


if __name__ == "__main__":
    session = spark_session.start("parameter-search", executors=2)
    for rate, loss in run(session, parse()).items():
        print(f"rate {rate}: loss {loss:.4f}")
