"""The Caffe application on YARN; its rows, model and snapshots are in HDFS."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
from hadoop_faults import executors, kill_one, trainers
from lmdb_files import datum, write_lmdb
from pyarrow import orc
from source_nets import SourceNet, weights_of
from yarn_programs import (
    GOAL,
    accuracy,
    content,
    last_application,
    names,
    output_of,
    run_program,
    spark_submit,
)

from hearth import caffeonspark
from hearth.caffeonspark import CaffeOnSpark, DataSource
from hearth.caffeonspark.tools.sequence_keys import datum_key
from hearth.caffeonspark.tools.sequence_parts import write_records


def ready_ones(events: list[dict]) -> list[int]:
    """The iterations at which ranks started, one for each generation."""
    return [event["iteration"] for event in events if event["event"] == "ready"]


def test_a_relative_model_is_in_hdfs_as_its_snapshots_are(hadoop, digits, trained):
    assert f"The model is {digits.home}/models/lenet.caffemodel" in trained.stderr
    assert names(hadoop, "models") == [
        "lenet.caffemodel",
        "lenet_iter_100.caffemodel",
        "lenet_iter_100.hearth.json",
        "lenet_iter_100.solverstate",
        "lenet_iter_200.caffemodel",
        "lenet_iter_200.hearth.json",
        "lenet_iter_200.solverstate",
    ]
    means = content(hadoop, "means.txt").decode()
    assert accuracy(means) > GOAL
    assert last_application(hadoop)["finalStatus"] == "SUCCEEDED"


def test_features_go_to_hdfs(hadoop, spark, digits, trained):
    model, output = f"{digits.home}/models/lenet.caffemodel", f"{digits.home}/features"
    conf = digits.config(spark, digits.solver(), model=model, features="ip1", label="label")
    cos, source = CaffeOnSpark(spark), DataSource(spark).getSource(conf, False)
    cos.features(source).write.json(output)
    rows = spark.read.json(output)
    assert rows.count() == spark.read.parquet(source.uri).count()
    assert len(rows.first()["ip1"]) == 500


def test_a_model_of_a_local_name_stays_on_its_host(spark, digits, trained, tmp_path):
    path = tmp_path / "lenet.caffemodel"
    weights = f"{digits.home}/models/lenet.caffemodel"
    solver = digits.solver(max_iter=2, snapshot=0)
    conf = digits.config(spark, solver, model=f"file:{path}", weights=weights, spill="off")
    CaffeOnSpark(spark, on_event=lambda _: None).train(DataSource(spark).getSource(conf, True))
    assert path.stat().st_size > 1e6


def train(spark, digits, folder: str, every: int, on_event=lambda event: None) -> list[dict]:
    """Trains with a snapshot every `every` iterations; returns the events."""
    events: list[dict] = []

    def listen(event: dict) -> None:
        events.append(event)
        on_event(event)

    solver = digits.solver(max_iter=1000, snapshot=every, snapshot_prefix='"lenet"')
    conf = digits.config(spark, solver, model=f"{folder}/lenet.caffemodel")
    CaffeOnSpark(spark, listen).train(DataSource(spark).getSource(conf, True))
    return events


def test_a_killed_container_and_a_killed_trainer_cost_no_run(hadoop, spark, digits):
    application = spark.sparkContext.applicationId

    def seals() -> int:
        return sum(name.endswith(".hearth.json") for name in names(hadoop, "killed"))

    victims, begun = [executors, trainers], None

    def kill(event: dict) -> None:
        """Kills once per generation, as soon as the generation has written a snapshot.

        Snapshots that the previous generation wrote after its kill do not count.
        """
        nonlocal begun
        if event["event"] == "ready":
            begun = seals()
        elif victims and event["event"] == "progress" and begun is not None and seals() > begun:
            begun = None
            kill_one(victims.pop(0), application)

    train(spark, digits, "whole", 0)
    events = train(spark, digits, "killed", 25, kill)
    assert not victims
    assert len([event for event in events if event["event"] == "restart"]) == 2
    starts = ready_ones(events)
    warnings = [event["text"] for event in events if event.get("level") == "W"]
    assert starts[0] == 0 < starts[1] < starts[2], (starts, warnings)
    whole, again = (content(hadoop, f"{name}/lenet.caffemodel") for name in ("whole", "killed"))
    assert whole == again  # equal to the model without kills, bit for bit
    said = [event["text"] for event in events if "on their own hosts" in event.get("text", "")]
    assert len(said) == 2  # of the plan, and of the last ranks' reads
    assert all("100 % of" in text for text in said)


def test_ranks_read_each_format_from_their_own_hosts(hadoop, spark, digits, tmp_path):
    net = SourceNet(tmp_path)
    rows = pq.read_table(digits.folder / "work" / "raw" / "train.parquet").slice(0, 400)
    rows = rows.rename_columns({"image": "data"})
    images = rows.to_pylist()
    for kind in ("parquet", "orc", "sequence"):
        (tmp_path / "formats" / kind).mkdir(parents=True)
    folder = tmp_path / "formats"
    pq.write_table(rows, folder / "parquet" / "part-0.parquet")
    orc.write_table(rows, folder / "orc" / "part-0.orc")
    with open(folder / "sequence" / "part-0", "wb") as file:
        keys = [datum_key(row["id"], str(row["label"]), 1, 28, 28, False) for row in images]
        write_records(file, zip(keys, (row["data"] for row in images), strict=True))
    records = {
        f"{i:08d}": datum(row["data"], row["label"], (1, 28, 28)) for i, row in enumerate(images)
    }
    write_lmdb(folder / "lmdb", records)
    hadoop.run("hdfs", "dfs", "-put", str(folder), f"{digits.home}/formats")

    weights = {}
    for kind, layer, fields in (
        ("parquet", "ImageDataFrame", ""),
        ("orc", "ImageDataFrame", 'dataframe_format: "orc"'),
        ("sequence", "SeqImageDataSource", ""),
        ("lmdb", "LMDB", ""),
    ):
        fields = f"channels: 1 height: 28 width: 28 {fields}"
        conf = net.config(spark, layer, f"{digits.home}/formats/{kind}", fields=fields)
        events: list[dict] = []
        CaffeOnSpark(spark, events.append).train(DataSource(spark).getSource(conf, True))
        (read,) = (e["text"] for e in events if "bytes of files" in e.get("text", ""))
        assert read.endswith("100 % of them on their own hosts"), (kind, read)
        weights[kind] = weights_of(conf)
    assert all(found == weights["parquet"] for found in weights.values())


def submit_cluster(digits, *flags: str, attempts: int = 1):
    """Runs `python -m hearth.caffeonspark` in cluster mode."""
    program = str(Path(caffeonspark.__file__).with_name("__main__.py"))
    solver = next(flag for flag in flags if flag.endswith(".prototxt"))
    net = Path(solver).with_name("lenet_cos_train_test.prototxt")
    return run_program(
        spark_submit(), "--master", "yarn", "--deploy-mode", "cluster",
        "--conf", f"spark.yarn.maxAppAttempts={attempts}", "--files", f"{solver},{net}",
        program, *(Path(flag).name if flag == solver else flag for flag in flags),
        folder=digits.folder,
    )  # fmt: skip


def test_cluster_mode_refuses_files_that_yarn_deletes_with_the_container(hadoop, digits):
    done = submit_cluster(
        digits, "-train", "-conf", digits.solver(), "-model", "file:lenet.caffemodel"
    )
    assert done.returncode != 0
    application = last_application(hadoop)
    assert application["finalStatus"] == "FAILED"
    said = json.dumps(application) + output_of(hadoop, application["id"])
    assert "-model file:lenet.caffemodel is in the working directory" in said


def test_the_jar_trains_and_tests_in_cluster_mode(hadoop, digits):
    root = Path(__file__).resolve().parents[2]
    subprocess.run(["make", "-s", "jar"], cwd=root, check=True, timeout=280)
    solver = digits.solver(max_iter=200, snapshot=0)
    net = Path(solver).with_name("lenet_cos_train_test.prototxt")
    done = run_program(
        spark_submit(), "--master", "yarn", "--deploy-mode", "cluster",
        "--files", f"{solver},{net}", "--class", "com.yahoo.ml.caffe.CaffeOnSpark",
        str(root / "jvm" / "target" / "hearth-spark_2.13.jar"),
        "-train", "-test", "-conf", Path(solver).name, "-clusterSize", "2",
        "-model", "models/jar.caffemodel", "-output", "jar_means.txt", folder=digits.folder,
    )  # fmt: skip
    said = output_of(hadoop, last_application(hadoop)["id"])
    assert done.returncode == 0, done.stderr[-3000:] + said[-3000:]
    assert accuracy(content(hadoop, "jar_means.txt").decode()) > GOAL
    assert "jar.caffemodel" in names(hadoop, "models")
