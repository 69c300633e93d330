"""DistributedDataParallel over the backend "hearth", with rows of a DataFrame, in pods."""

import json
import os
import sys


def main(folder, ctx):
    import torch
    import torch.distributed as dist

    from hearth.collective import ranks

    dist.init_process_group("hearth")
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = 0
    for _ in range(3):
        for batch in ctx.dataset("train", batch_size=32):
            loss = (model(batch["x"])[:, 0] - batch["y"]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rows += len(batch["y"])
    ctx.checkpoint(rows, model=model)
    over = {each.description for each in ranks._open_ranks}
    dist.destroy_process_group()
    return {
        "loss": float(loss),
        "rows": rows,
        "over": sorted(over),
        "uid": os.getuid(),
        "shm_mb": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize >> 20,
        "root": os.access("/etc", os.W_OK) or os.access("/tmp", os.W_OK),
    }


def run(result):
    from pyspark.sql import SparkSession

    from hearth.torch import TorchCluster

    spark = SparkSession.builder.getOrCreate()
    frame = spark.range(0, 1280, 1, 4).selectExpr(
        "array(float(id % 7) / 7, float(id % 5) / 5) x", "float(id % 7 * 3 / 7 - id % 5 * 2 / 5) y"
    )
    running = TorchCluster.run(
        spark, main, None, workers=2, datasets={"train": frame},
        checkpoint_dir="file:/mnt/shared/checkpoints",
    )  # fmt: skip
    with open(result, "w") as file:
        json.dump(running.result(), file)
    spark.stop()


if __name__ == "__main__":
    run(sys.argv[1])
