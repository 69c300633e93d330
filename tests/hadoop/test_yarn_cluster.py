"""A cluster's nodes on YARN, fed with rows from HDFS; each row arrives once."""

from __future__ import annotations

import json
import os
import signal
import sys

import pyarrow as pa
from pyspark import cloudpickle

from hearth import cluster
from hearth.files.hadoop_files import HadoopFiles
from hearth.native import _core
from hearth.tensorflowonspark import dfutil

ROWS = 4000


def count_rows(args, ctx):
    """Takes all rows, and writes their number and sum to a file."""
    feed = ctx.get_data_feed()
    rows = total = 0
    while not feed.should_stop():
        batch = feed.next_batch(100)
        rows += len(batch)
        total += sum(row[0] for row in batch)
    with open(os.path.join(args["folder"], f"node{ctx.index}"), "w") as file:
        json.dump({"rows": rows, "sum": total, "container": os.environ["CONTAINER_ID"]}, file)


def sum_files(args, ctx):
    """Reads this node's share of each folder directly from HDFS, twice."""
    found = {}
    for name in args["folders"]:
        feed = ctx.get_file_feed(name, ["id"], epochs=2)
        rows = total = 0
        while not feed.should_stop():
            batch = feed.next_batch(100)
            rows += len(batch)
            total += sum(row[0] for row in batch)
        found[name] = [rows, total]
    with open(os.path.join(args["folder"], f"node{ctx.index}"), "w") as file:
        json.dump(found, file)


def write_records(spark, folder, local):
    """Writes the numbers as TFRecord files to a folder in HDFS."""
    for part in range(4):
        writer = _core.TfRecordWriter(str(local))
        writer.write(pa.record_batch({"id": pa.array(range(part, ROWS, 4), pa.int64())}))
        writer.finish()
        HadoopFiles.of(spark).write(f"{folder}/part-r-{part}", local.read_bytes())


def test_nodes_read_files_near_their_blocks_themselves(hadoop, spark, tmp_path):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    tmp_path.chmod(0o777)
    home = f"{hadoop.uri}/user/{hadoop.user}"
    parquet, records = f"{home}/columns", f"{home}/records"
    rows = spark.range(ROWS).repartition(4)
    rows.write.option("parquet.block.size", 2048).parquet(parquet)
    write_records(spark, records, tmp_path / "record")
    args = {"folder": str(tmp_path), "folders": [parquet, records]}
    cluster_of_files = cluster.run(spark, sum_files, args=args, nodes=2, feeds=())
    cluster_of_files.shutdown()
    found = [json.loads(file.read_text()) for file in tmp_path.glob("node*")]
    for folder in (parquet, records):
        assert sum(node[folder][0] for node in found) == 2 * ROWS
        assert sum(node[folder][1] for node in found) == ROWS * (ROWS - 1)
        assert all(node[folder][0] for node in found)
    local, remote = cluster_of_files.bytes_read()  # the only DataNode is on this host
    assert local > 0
    assert remote == 0


def test_records_are_saved_and_loaded_by_executors_without_a_configuration(hadoop, spark):
    assert not spark.sparkContext.parallelize([0], 1).map(
        lambda _: __import__("os").environ.get("HADOOP_CONF_DIR", "")
    ).first()  # fmt: skip
    target = f"{hadoop.uri}/user/{hadoop.user}/saved"
    rows = spark.createDataFrame([(i, [i / 2, 1.0]) for i in range(100)], "id long, v array<float>")
    dfutil.saveAsTFRecords(rows.repartition(2), target)
    names = HadoopFiles.of(spark).names(target)
    assert names == ["_SUCCESS", "_schema.json", "part-r-00000", "part-r-00001"]
    back = dfutil.loadTFRecords(spark.sparkContext, target)
    assert sorted(back.collect()) == sorted(rows.collect())


def killed_at_first(batches):
    """Passes the rows on; the first attempt of each task is killed after some of them."""
    from pyspark import TaskContext

    for batch in batches:
        yield batch
        if TaskContext.get().attemptNumber() == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def test_records_of_killed_tasks_are_written_by_the_next_ones(hadoop, spark):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    target = f"{hadoop.uri}/user/{hadoop.user}/saved_again"
    rows = spark.range(1000).repartition(2)
    dfutil.saveAsTFRecords(rows.mapInArrow(killed_at_first, rows.schema), target)
    names = [os.path.basename(status.uri) for status in _core.list_folder(target)]  # all files
    assert names == ["_SUCCESS", "_schema.json", "part-r-00000", "part-r-00001"]
    back = dfutil.loadTFRecords(spark.sparkContext, target)
    assert sorted(row.id for row in back.collect()) == list(range(1000))


def test_every_row_is_fed_once(hadoop, spark, tmp_path):
    # Executors cannot import test modules, so functions are pickled by value.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    target = f"{hadoop.uri}/user/{hadoop.user}/numbers"
    spark.range(ROWS).repartition(4).write.parquet(target)
    tmp_path.chmod(0o777)
    with cluster.run(spark, count_rows, args={"folder": str(tmp_path)}, nodes=2) as nodes:
        nodes.train(spark.read.parquet(target).rdd.map(tuple), epochs=2)
    found = [json.loads(file.read_text()) for file in tmp_path.glob("node*")]
    assert sum(node["rows"] for node in found) == 2 * ROWS
    assert sum(node["sum"] for node in found) == ROWS * (ROWS - 1)
    assert len({node["container"] for node in found}) == 2
