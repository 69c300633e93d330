"""For YARN's cluster mode: trains on Parquet files in HDFS with the soak's PyTorch program, which
records the rows of each step in a local folder.

    recorded_program.py SOAK FOLDER HOME

SOAK: tests/soak, because YARN copies only this file. FOLDER: for the records. HOME: a folder in
HDFS.
"""

from __future__ import annotations

import sys

ROWS, EPOCHS = 400, 6


def main(folder: str, home: str) -> None:
    import counted_programs
    from pyspark.sql import SparkSession

    import hearth.data
    from hearth.torch import TorchCluster

    spark = SparkSession.builder.getOrCreate()
    attempt = int(spark.sparkContext._jsc.sc().applicationAttemptId().get())
    frame = spark.range(0, ROWS, 1, 3).selectExpr(
        "int(id) id", "float(id % 7 / 7) x", "float(id / 1000) y"
    )
    frame.write.mode("ignore").parquet(f"{home}/rows")
    training = counted_programs.Training(folder, EPOCHS, 1000 * attempt, pace_s=0.1)
    options = {"datasets": {"train": hearth.data.parquet(f"{home}/rows")}, "restart": True}
    options["checkpoint_dir"] = f"{home}/checkpoints"
    TorchCluster.run(spark, counted_programs.train_torch, training, 2, **options).shutdown()
    spark.stop()


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    main(*sys.argv[2:])
