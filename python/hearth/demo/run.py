"""Trains LeNet on two Spark executors, tests it, and uses its features in Spark ML.

Runs the three commands that a user would type. --layer selects the input format: memory (encoded
PNG images) or cos (raw bytes). Needs oneDNN and pyspark: the extras [caffe,spark].
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from hearth import native
from hearth.demo import prepare

HERE = Path(__file__).resolve().parent
GOAL = 0.97
KIND = {"memory": "png", "cos": "raw"}  # table of each data layer


def solver_file(layer: str) -> str:
    """The name of the solver file for a data layer (memory or cos)."""
    return f"lenet_{layer}_solver.prototxt"


def require_extras() -> None:
    """Raises SystemExit if the engine or pyspark is missing, with the package to install."""
    try:
        native.program()
    except (FileNotFoundError, ImportError) as error:
        sys.exit(f"digits: {error}")
    if importlib.util.find_spec("pyspark") is None:
        sys.exit("digits: this needs pyspark: pip install 'hearth-spark[spark]'")


def announce(step: int, text: str) -> None:
    """Prints the title of a step of the demo."""
    print(f"\n[{step}/5] {text}", flush=True)


def run_command(flags: str, folder: Path) -> float:
    """Runs `python -m hearth.caffeonspark` with `flags` (split as a shell does); returns seconds.

    Raises:
        SystemExit: the command failed; it has printed the reason.
    """
    print(f"$ python -m hearth.caffeonspark {flags}", flush=True)
    start = time.perf_counter()
    command = [sys.executable, "-m", "hearth.caffeonspark", *shlex.split(flags)]
    status = subprocess.run(command, cwd=folder).returncode
    if status != 0:
        sys.exit(f"digits: the command above failed with status {status}")
    return time.perf_counter() - start


def read_means(path: Path) -> dict[str, float]:
    """Parses the output file of -test, which has `name: value` lines."""
    pairs = (line.split(": ") for line in path.read_text().splitlines())
    return {name: float(values.split(",")[0]) for name, values in pairs}


def logistic_regression(layer: str, model: str, folder: Path, test_features: Path) -> float:
    """Returns the accuracy of Spark ML's LogisticRegression on the features `ip1`.

    The model is fitted on features of the training rows, extracted here, and scored on features of
    the held-out rows, which are in `test_features`.
    """
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.evaluation import MulticlassClassificationEvaluator
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql.functions import col

    from hearth.caffeonspark import CaffeOnSpark, Config, DataSource
    from hearth.spark import session as spark_session

    spark = spark_session.start("digits", executors=2)
    try:
        solver = str(folder / solver_file(layer))
        flags = {"conf": solver, "model": model, "features": "ip1", "label": "label"}
        conf = Config(spark, flags)
        train_rows = spark.read.parquet(str(folder / "work" / KIND[layer] / "train.parquet"))
        source = DataSource(spark).fromDataFrame(conf, train_rows, isTraining=False)

        def labelled(frame):
            features = array_to_vector(col("ip1").cast("array<double>")).alias("features")
            return frame.select(features, col("label")[0].cast("double").alias("label")).cache()

        train = labelled(CaffeOnSpark(spark).features(source))
        model = LogisticRegression(maxIter=50, regParam=0.01).fit(train)
        scored = model.transform(labelled(spark.read.parquet(str(test_features))))
        return MulticlassClassificationEvaluator(metricName="accuracy").evaluate(scored)
    finally:
        spark.stop()


def print_table(rows: list[tuple[str, str, float]]) -> None:
    """Prints (step, result, seconds) rows in columns."""
    print(f"\n{'step':<36}{'result':<22}{'seconds':>8}")
    for step, result, seconds in rows:
        print(f"{step:<36}{result:<22}{seconds:>8.1f}")


def _shorter(path: str, start: str) -> str:
    """The path relative to `start`, or the absolute path if that is shorter."""
    return min(os.path.relpath(path, start), os.path.abspath(path), key=len)


def print_next(solver: str, folder: Path) -> None:
    """Prints three commands to run after the demo."""
    python = _shorter(sys.executable, str(folder))
    hearth = _shorter(f"{sysconfig.get_path('scripts')}/hearth", str(folder))
    train = f"-train -conf {solver} -model lenet.caffemodel -clusterSize 2"
    print(f"""
Next, after `cd {_shorter(str(folder), os.curdir)}`:

  {hearth} train --solver={solver}
      the same training in one process, without Spark
  {python} -m hearth.caffeonspark {train} -ui
      on two executors again, with its curves on a web page
  {hearth} pack -o work/hearth.tar.gz
      an archive for the nodes of a YARN cluster, and how spark-submit takes it""")


def main(folder: Path = HERE) -> int:
    """Copies the prototxts to `folder` and runs the job there; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layer", choices=["memory", "cos"], default="memory")
    layer = parser.parse_args().layer
    require_extras()
    work = folder / "work"
    solver = solver_file(layer)
    model = f"file:{work / f'lenet_{layer}.caffemodel'}"
    means, features = work / "test_result.txt", work / "features.parquet"

    start = time.perf_counter()
    announce(1, f"write 1,797 images of digits as Parquet into {work}")
    held_out = prepare.write_tables(work)
    for file in HERE.glob("*.prototxt"):
        if folder.resolve() != HERE:
            shutil.copy(file, folder)
    shutil.rmtree(features, ignore_errors=True)  # Spark refuses to overwrite the folder
    rows = [("prepare the digits", f"{held_out} rows held out", time.perf_counter() - start)]

    announce(2, "train LeNet for 500 iterations on two Spark executors")
    seconds = run_command(f"-train -conf {solver} -model {model} -clusterSize 2 -devices 1", folder)
    rows.append(("-train on 2 executors", "", seconds))

    announce(3, "test it on the held-out rows")
    seconds = run_command(f"-test -conf {solver} -model {model} -output file:{means}", folder)
    accuracy = read_means(means)["accuracy"]
    rows.append(("-test, held-out fifth", f"accuracy {accuracy:.4f}", seconds))

    announce(4, "write the outputs of its layer ip1 for these rows")
    seconds = run_command(
        f"-features ip1 -label label -conf {solver} -model {model} "
        f"-output file:{features} -outputFormat parquet",
        folder,
    )
    rows.append(("-features ip1", features.name, seconds))

    announce(5, "fit Spark ML's LogisticRegression to the outputs of ip1 for the training rows")
    step = time.perf_counter()
    regression = logistic_regression(layer, model, folder, features)
    seconds = time.perf_counter() - step
    rows.append(("Spark ML LogisticRegression on ip1", f"accuracy {regression:.4f}", seconds))
    rows.append(("all", "", time.perf_counter() - start))
    print_table(rows)

    for name, value in (("the net", accuracy), ("LogisticRegression", regression)):
        if value < GOAL:
            sys.exit(f"digits: accuracy of {name} is {value:.4f}, below {GOAL}")
    print_next(solver, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
