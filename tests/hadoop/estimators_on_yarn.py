"""TorchEstimator and KerasEstimator on YARN with everything in HDFS: rows, checkpoints, models.

Runs a fit whose rank 1 is killed in its second epoch, then a fit with the same folder that trains
further, and loads the saved model. Arguments: a folder in HDFS, a folder that all hosts share, and
the framework.
"""

import os
import signal
import sys

from hearth.files.hadoop_files import HadoopFiles
from hearth.ml import KerasEstimator, KerasModel, TorchEstimator, TorchModel
from hearth.spark import session as spark_session


def kill_once(folder, epoch, rank):
    """Kills rank 1 in its second epoch, but only once."""
    if epoch == 1 and rank == 1:
        try:
            open(f"{folder}/killed", "x").close()
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


class KillsTorch:
    """A callback of TorchEstimator that kills rank 1 once."""

    def __init__(self, folder):
        self.folder = folder

    def on_epoch_begin(self, trainer):
        """Called on each rank."""
        import torch.distributed as dist

        kill_once(self.folder, trainer.epoch, dist.get_rank())


class KillsKeras:
    """The same for KerasEstimator; called after each epoch, before the epoch's checkpoint."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, model, row):
        import hearth.tensorflow as hvt

        kill_once(self.folder, row["epoch"], hvt.rank())


def torch_line():
    import torch

    torch.manual_seed(1)
    return torch.nn.Linear(2, 1)


def keras_line():
    import keras

    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])


def torch_stage(callbacks=(), **params):
    import torch

    loss, optimizer = torch.nn.functional.mse_loss, torch.optim.Adam
    return TorchEstimator(torch_line, loss, optimizer, callbacks=callbacks, **params)


def keras_stage(callbacks=(), **params):
    return KerasEstimator(keras_line, "mse", "adam", callbacks=callbacks, **params)


STAGES = {
    "torch": (torch_stage, KillsTorch, TorchModel),
    "keras": (keras_stage, KillsKeras, KerasModel),
}


def main(home, folder, framework):
    make_stage, killer, kind = STAGES[framework]
    # A container has to hold the executor's JVM, a Python worker, and a node with the framework.
    conf = {"spark.executor.memoryOverhead": "2g"}
    spark = spark_session.start("estimators", master="yarn", conf=conf)
    made = spark.range(400).selectExpr(
        "id", "array(id / 400, 1 - id / 200) features", "array(id / 100) label"
    )
    made.write.parquet(f"{home}/rows")
    rows = spark.read.parquet(f"{home}/rows")
    params = {"learningRate": 0.05, "seed": 3, "workers": 2, "validationFraction": 0.2}
    params["storeDir"] = f"{home}/run"

    first = make_stage([killer(folder)], epochs=2, **params).fit(rows)
    assert os.path.exists(f"{folder}/killed")
    assert [row["epoch"] for row in first.history] == [0, 1], first.history
    names = HadoopFiles.of(spark).names(f"{home}/run")
    assert sum(name.startswith("checkpoint-") for name in names) == 2, names
    longer = make_stage(epochs=4, **params).fit(rows)
    assert longer.history[:2] == first.history and len(longer.history) == 4, longer.history
    assert longer.history[-1]["loss"] < first.history[0]["loss"], longer.history
    longer.save(f"{home}/model")
    again = kind.load(f"{home}/model", trusted=True)
    found = {row.id: row.output for row in longer.transform(rows).collect()}
    assert {row.id: row.output for row in again.transform(rows).collect()} == found
    assert len(found) == 400
    spark_session.stop(spark)
    print("went on in HDFS")


if __name__ == "__main__":
    main(*sys.argv[1:])
