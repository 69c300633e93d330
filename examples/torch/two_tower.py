"""A two-tower recommender: embedding tables with sparse gradients, from a DataFrame of pairs.

python examples/torch/two_tower.py --table_rows 10000000
"""

from __future__ import annotations

import argparse
import json
import tempfile

from hearth.spark import session as spark_session
from hearth.torch import TorchCluster


def main_fun(args, ctx):
    """Moves each user's vector towards the vectors of the user's items."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group(ctx.backend)
    torch.manual_seed(0)
    model = DistributedDataParallel(make_model(args.table_rows, args.width))
    towers = model.module
    # Adagrad changes only the rows that have a gradient.
    optimizer = torch.optim.Adagrad(model.parameters(), lr=args.rate)
    pairs = ctx.dataset("pairs", args.batch_size, ("user", "item"))
    for _ in range(args.epochs):
        for user, item in pairs:
            optimizer.zero_grad()
            # The other items of the minibatch are negatives.
            scores = model(user, item)
            loss = torch.nn.functional.cross_entropy(scores, torch.arange(len(user)))
            loss.backward()
            optimizer.step()

    right = total = 0
    for user, liked, other in ctx.dataset("held_out", 64, ("user", "liked", "other"), False):
        with torch.no_grad():
            better = (towers.users(user) * (towers.items(liked) - towers.items(other))).sum(1) > 0
        right, total = right + int(better.sum()), total + len(user)
    found = ctx.reduce_metrics({"right": right / total, "loss": loss}, weight=total)
    weight = towers.users.weight.detach().sum(1)
    whole = [torch.empty_like(weight) for _ in range(ctx.world_size)]
    dist.all_gather(whole, weight)
    found["ranks_agree"] = all(torch.equal(each, weight) for each in whole)
    if ctx.rank == 0:
        with open(args.report, "w", encoding="utf-8") as file:
            json.dump(found, file)
    dist.destroy_process_group()


def make_model(rows: int, width: int):
    """The towers; computes the score of each user of a minibatch with each of its items."""
    import torch

    class Towers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.users = torch.nn.Embedding(rows, width, sparse=True)
            self.items = torch.nn.Embedding(rows, width, sparse=True)

        def forward(self, user, item):
            return self.users(user) @ self.items(item).T

    return Towers()


def frames(spark, args):
    """Pairs of a user and an item of the same taste; and held-out pairs, each with an item of
    another taste. Numbers are spread over the tables; the last digit is the taste."""

    def number(of):
        # Numbers 0 to args.active - 1, spread over the table.
        return f"{of} * {args.table_rows // args.active // 8 * 8} + taste"

    drawn = spark.range(0, args.pairs + 400, 1, 4).selectExpr(
        "id",
        "pmod(hash(id, 1), 8) taste",
        f"pmod(hash(id, 2), {args.active}) u",
        f"pmod(hash(id, 3), {args.active}) i",
    )
    rows = drawn.selectExpr(
        "id",
        f"bigint({number('u')}) user",
        f"bigint({number('i')}) item",
        f"bigint({number('i')} - taste + (taste + 1) % 8) other",
    )
    held_out = rows.where(f"id >= {args.pairs}").selectExpr("user", "item liked", "other")
    return rows.where(f"id < {args.pairs}").select("user", "item"), held_out


def run(spark, args) -> dict[str, float]:
    """Trains; returns `right`: how often the item of the user's taste scores higher."""
    pairs, held_out = frames(spark, args)
    datasets = {"pairs": pairs, "held_out": held_out}
    TorchCluster.run(spark, main_fun, args, args.workers, datasets=datasets).shutdown()
    with open(args.report, encoding="utf-8") as file:
        return json.load(file)


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table_rows", type=int, default=1_000_000, help="of each table")
    parser.add_argument("--active", type=int, default=20, help="users, and items, of each taste")
    parser.add_argument("--pairs", type=int, default=4000)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--report", default=tempfile.gettempdir() + "/two_tower.json")
    return parser.parse_args(argv)


if __name__ == "__main__":
    session = spark_session.start("two-tower", executors=2)
    print(run(session, parse()))
