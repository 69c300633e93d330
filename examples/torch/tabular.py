"""Spark ML stages, a DistributedDataParallel program on their vectors, Spark ML's metrics.

python examples/torch/tabular.py --model /tmp/tabular.pt
"""

from __future__ import annotations

import argparse

from hearth.ml import map_blocks
from hearth.spark import session as spark_session
from hearth.torch import TorchCluster


def main_fun(args, ctx):
    """Trains a network on the vectors; rank 0 saves it."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group(ctx.backend)
    torch.manual_seed(0)
    model = DistributedDataParallel(make_model(args.inputs))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.rate)
    rows = ctx.dataset("train", args.batch_size, ("features", "label"))
    for _ in range(args.epochs):
        for features, label in rows:
            optimizer.zero_grad()
            scores = model(features)[:, 0]
            torch.nn.functional.binary_cross_entropy_with_logits(scores, label).backward()
            optimizer.step()
    if ctx.rank == 0:
        torch.save(model.module.state_dict(), args.model)
    dist.destroy_process_group()


def make_model(inputs: int):
    from torch import nn

    return nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, 1))


def stages():
    """Turns the columns of the table into a vector with mean 0 and deviation 1."""
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import StandardScaler, StringIndexer, VectorAssembler

    indexer = StringIndexer(inputCol="plan", outputCol="plan_index")
    assembler = VectorAssembler(inputCols=["plan_index", "months", "calls"], outputCol="raw")
    scaler = StandardScaler(inputCol="raw", outputCol="vector", withMean=True)
    return Pipeline(stages=[indexer, assembler, scaler])


def scores_of(model):
    """A column of scores, a number for each row."""
    import torch

    def scores(features: torch.Tensor):
        with torch.no_grad():
            return {"score": model(features)[:, 0].double()}

    return scores


def table(spark, rows: int):
    """Customers. The label is 1 for many calls in few months, unless the plan is "max"."""
    drawn = spark.range(0, rows, 1, 4).selectExpr(
        "id",
        "element_at(array('free', 'plus', 'max'), pmod(hash(id, 1), 3) + 1) plan",
        "double(pmod(hash(id, 2), 60)) months",
        "double(pmod(hash(id, 3), 30)) calls",
    )
    return drawn.selectExpr("*", "float(plan != 'max' and calls * 2 > months) label")


def run(spark, args) -> float:
    """Trains; returns the area under the ROC curve of the held-out rows."""
    import torch
    from pyspark.ml.evaluation import BinaryClassificationEvaluator
    from pyspark.ml.functions import vector_to_array

    train, test = (table(spark, args.rows).where(f"id % 5 {of} 0") for of in (">", "="))
    fitted = stages().fit(train)

    def prepared(frame):
        features = vector_to_array("vector", "float32").alias("features")
        return fitted.transform(frame).select("id", features, "label")

    datasets = {"train": prepared(train)}
    TorchCluster.run(spark, main_fun, args, args.workers, datasets=datasets).shutdown()
    model = make_model(args.inputs)
    model.load_state_dict(torch.load(args.model))
    predicted = map_blocks(scores_of(model), prepared(test), outputs="score double")
    return BinaryClassificationEvaluator(rawPredictionCol="score").evaluate(predicted)


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="file for the model's state_dict")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--inputs", type=int, default=3, help="length of a row's vector")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--rate", type=float, default=0.01)
    return parser.parse_args(argv)


if __name__ == "__main__":
    session = spark_session.start("tabular", executors=2)
    print(f"area under ROC: {run(session, parse()):.3f}")
