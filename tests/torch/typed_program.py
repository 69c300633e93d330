"""A user's program for the type checker; only `make lint` reads it.

Each `type: ignore` marks a mistake that the checker must find; an unnecessary one is an error.
"""

from typing import assert_type

import torch

from hearth import HearthError
from hearth.cluster import Clustr  # type: ignore[attr-defined]  # noqa: F401
from hearth.torch import FeedTimeoutError, TorchCluster, TorchContext, TorchDistributor, in_step


def main(args: int, ctx: TorchContext) -> None:
    assert_type(ctx.rank, int | None)
    assert_type(ctx.device, torch.device)
    feed = ctx.get_data_feed(train_mode=True)
    for _, weight in in_step(feed.as_iterable_dataset(8, ("x", "y"))):
        assert_type(weight, float)
    feed.comit()  # type: ignore[attr-defined]
    feed.as_iterable_dataset(bach_size=8)  # type: ignore[call-arg]
    print(ctx.local_rnk)  # type: ignore[attr-defined]


def drive(spark: object) -> None:
    with TorchCluster.run(spark, main, 1, workers=2) as cluster:
        assert_type(cluster, TorchCluster)
        cluster.train(None, epochs=3)
        cluster.trian(None)  # type: ignore[attr-defined]
    TorchCluster.run(spark, main, workerz=2)  # type: ignore[call-arg]
    TorchDistributor(num_processes="2")  # type: ignore[arg-type]
    try:
        cluster.shutdown()
    except (FeedTimeoutError, HearthError):
        assert_type(cluster.__enter__(), TorchCluster)
