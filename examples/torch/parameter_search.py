"""Several trainings at a time in one Spark session; the best one wins. Optuna chooses their rates
if it is installed.

python examples/torch/parameter_search.py
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from types import SimpleNamespace

from hearth.spark import session as spark_session
from hearth.torch import TorchCluster


def main_fun(args, ctx):
    """One trial: trains with its rate and returns the held-out loss, reported after each epoch."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group(ctx.backend)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.rate)
    rows = ctx.dataset("train", 16, ("x", "y"))
    test = ctx.dataset("test", 64, ("x", "y"), False)
    for epoch in range(args.epochs):
        for x, y in rows:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x)[:, 0], y).backward()
            optimizer.step()
        loss = count = 0
        with torch.no_grad():
            for x, y in test:
                loss += torch.nn.functional.mse_loss(model(x)[:, 0], y, reduction="sum")
                count += len(y)
        found = ctx.reduce_metrics({"loss": loss / count}, weight=count)
        ctx.report(found, step=epoch)
        if ctx.should_stop:
            break
    dist.destroy_process_group()
    return found["loss"]


def frames(spark, rows: int):
    """Points of a plane, for training and held out."""
    drawn = spark.range(0, rows, 1, 2).selectExpr(
        "id", "float(pmod(hash(id, 1), 100) / 50 - 1) a", "float(pmod(hash(id, 2), 100) / 50 - 1) b"
    )
    whole = drawn.selectExpr("id", "array(a, b) x", "float(3 * a - 2 * b + 1) y")
    return whole.where("id % 5 > 0"), whole.where("id % 5 = 0")


def trial(spark, args, datasets, rate: float, on_report=None) -> float:
    """The loss of a training with this rate.

    The training ends early if on_report(report) returns False. Any thread may call it.
    """
    given = SimpleNamespace(rate=rate, epochs=args.epochs)
    cluster = TorchCluster.run(
        spark, main_fun, given, args.workers, datasets=datasets, on_report=on_report
    )
    return cluster.result()[0]


def run(spark, args) -> dict[float, float]:
    """The loss of each rate, best first; `args.at_once` trainings run at a time."""
    train, test = frames(spark, args.rows)
    datasets = {"train": train, "test": test}
    with ThreadPoolExecutor(args.at_once) as threads:
        losses = threads.map(lambda rate: trial(spark, args, datasets, rate), args.rates)
        found = dict(zip(args.rates, losses, strict=True))
    return dict(sorted(found.items(), key=lambda each: each[1]))


def search(spark, args):
    """Optuna's study of `args.trials` trainings, `args.at_once` at a time. It chooses each rate by
    earlier losses, and ends a training that is worse than most were at the same epoch."""
    import optuna

    train, test = frames(spark, args.rows)
    datasets = {"train": train, "test": test}

    def objective(one):
        def on_report(report):
            one.report(report.values["loss"], report.step)
            return not one.should_prune()

        rate = one.suggest_float("rate", 1e-4, 1, log=True)
        loss = trial(spark, args, datasets, rate, on_report)
        if one.should_prune():
            raise optuna.TrialPruned
        return loss

    study = optuna.create_study(pruner=optuna.pruners.MedianPruner(n_startup_trials=2))
    study.optimize(objective, n_trials=args.trials, n_jobs=args.at_once)
    return study


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.0001, 0.1, 0.003])
    parser.add_argument(
        "--trials",
        type=int,
        default=8 if find_spec("optuna") else 0,
        help="trainings whose rates Optuna chooses; 0: --rates; by default 8 where it is installed",
    )
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--workers", type=int, default=1, help="of each training")
    parser.add_argument("--at_once", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    return parser.parse_args(argv)


if __name__ == "__main__":
    session, given = spark_session.start("parameter-search", executors=2), parse()
    if given.trials:
        for each in (study := search(session, given)).trials:
            print(each.state.name, each.params, each.intermediate_values)
        found = {study.best_params["rate"]: study.best_value}
    else:
        found = run(session, given)
    for rate, loss in found.items():
        print(f"rate {rate}: loss {loss:.4f}")
