"""ctx.dataset(): every row once per epoch, in an order that depends only on the seed; resumed
exactly, also after a killed rank and with another number of ranks.
"""

from __future__ import annotations

import os
import signal

import pytest

from hearth import HearthError
from hearth.torch import NodeError, TorchCluster


def take_epochs(args, ctx):
    """Notes the ids of each batch of some epochs, and the loader's length and repeated rows."""
    notes, options, epochs, state = args
    loader = ctx.dataset("train", **options)
    if state is not None:
        loader.load_state_dict(state)
    taken = [[batch["id"].tolist() for batch in loader] for _ in range(epochs)]
    notes.write(ctx, {"epochs": taken, "len": len(loader), "repeated": loader.repeated_rows})


def run(spark, notes, frame, epochs=2, workers=2, state=None, **options):
    """Runs take_epochs() on a cluster; returns its notes by rank."""
    args = (notes, {"batch_size": 16, **options}, epochs, state)
    datasets = {"train": frame}
    TorchCluster.run(spark, take_epochs, args, workers=workers, datasets=datasets).shutdown()
    return [notes.read()[f"worker{rank}"] for rank in range(workers)]


def ids(nodes, epoch):
    return sorted(i for node in nodes for batch in node["epochs"][epoch] for i in batch)


def test_every_row_is_delivered_in_every_epoch_in_another_order(spark, notes):
    nodes = run(spark, notes, spark.range(0, 960, 1, 5))
    for epoch in (0, 1):
        assert set(ids(nodes, epoch)) == set(range(960))
        assert len(ids(nodes, epoch)) == 960 + sum(node["repeated"] for node in nodes) // 2
    assert {len(epoch) for node in nodes for epoch in node["epochs"]} == {nodes[0]["len"]}
    orders = [[i for batch in epoch for i in batch] for epoch in nodes[0]["epochs"]]
    assert sorted(orders[0]) == sorted(orders[1]) and orders[0] != orders[1]
    assert orders[0] != sorted(orders[0])


def numbered_by_task(batches):
    """Ids computed from the task's number, as a user's function may do."""
    import pyarrow as pa
    from pyspark import TaskContext

    first = TaskContext.get().partitionId() * 10
    for _ in batches:
        yield pa.record_batch({"id": pa.array(range(first, first + 10), pa.int64())})


def test_frames_that_have_as_many_partitions_already_lose_no_row(spark, notes):
    """One frame is local to the driver, where Spark folds expressions; one uses task numbers."""
    import pandas

    of_driver = spark.createDataFrame(pandas.DataFrame({"id": range(480)}))
    by_task = spark.range(0, 48, 1, 48).mapInArrow(numbered_by_task, "id bigint")
    for frame in (of_driver, by_task):
        nodes = run(spark, notes, frame, epochs=1)
        assert ids(nodes, 0) == list(range(480))


@pytest.mark.parametrize("shuffle", [True, "full"])
def test_two_runs_give_the_same_batches_to_the_same_ranks(spark, tmp_path, shuffle):
    from node_notes import Notes

    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        frame = spark.range(0, 500, 1, 3)
        found.append(run(spark, Notes(str(tmp_path / name)), frame, shuffle=shuffle, seed=5))
    assert found[0] == found[1]


def step_and_save(args, ctx):
    """Takes some batches; notes their ids, and the state after the last one."""
    notes, options, batches, state = args
    loader = ctx.dataset("train", **options)
    if state is not None:
        loader.load_state_dict(state)
    taken = []
    while len(taken) < batches:
        for batch in loader:
            taken.append(batch["id"].tolist())
            if len(taken) == batches:
                break
    notes.write(ctx, {"taken": taken, "state": loader.state_dict()})


def steps(spark, folder, batches, workers=2, state=None):
    from node_notes import Notes

    folder.mkdir()
    notes = Notes(str(folder))
    args = (notes, {"batch_size": 10, "seed": 3, "uneven": "repeat"}, batches, state)
    frame = spark.range(0, 450, 1, 3)
    datasets = {"train": frame}
    TorchCluster.run(spark, step_and_save, args, workers=workers, datasets=datasets).shutdown()
    return [notes.read()[f"worker{rank}"] for rank in range(workers)]


@pytest.mark.parametrize("before", [7, 30])
def test_a_resumed_run_takes_the_batches_of_an_unbroken_one(spark, tmp_path, before):
    whole = steps(spark, tmp_path / "whole", before + 40)
    first = steps(spark, tmp_path / "first", before)
    # Equal on both ranks except for `partitions`: rows are still being delivered, and each rank
    # knows only what it has received.
    states = [{**node["state"], "partitions": None} for node in first]
    assert states[0] == states[1]
    second = steps(spark, tmp_path / "second", 40, state=first[0]["state"])
    for rank in (0, 1):
        assert first[rank]["taken"] + second[rank]["taken"] == whole[rank]["taken"]


def test_other_ranks_take_each_row_that_is_left_of_the_epoch_once(spark, notes, tmp_path):
    first = steps(spark, tmp_path / "first", 9)
    taken = {i for node in first for batch in node["taken"] for i in batch}
    frame = spark.range(0, 450, 1, 3)
    state = first[0]["state"]
    options = {"batch_size": 10, "seed": 3, "uneven": "weight"}
    nodes = run(spark, notes, frame, epochs=2, workers=1, state=state, **options)
    left = ids(nodes, 0)
    assert sorted(taken | set(left)) == list(range(450))
    assert len(left) == 450 - len(taken)
    assert set(ids(nodes, 1)) == set(range(450))


def test_rows_that_changed_are_an_error_with_name_and_difference(spark, tmp_path, notes):
    state = steps(spark, tmp_path / "first", 60)[0]["state"]
    frame = spark.range(0, 451, 1, 3)
    expected = "dataset 'train' has changed since its state was saved: it had 450 rows"
    with pytest.raises(NodeError, match=expected):
        run(spark, notes, frame, state=state, seed=3)


def dies_once(args, ctx):
    """Takes an epoch; rank 1 kills itself once in the middle of it."""
    notes, kept = args
    loader = ctx.dataset("train", batch_size=5)
    state = f"{kept}/state"
    if os.path.exists(state):
        import json

        with open(state) as file:
            loader.load_state_dict(json.load(file))
    taken = []
    for step, batch in enumerate(loader):
        taken.append(batch["id"].tolist())
        if step == 4 and ctx.restart_count == 0 and ctx.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    notes.write(ctx, {"taken": taken, "restarts": ctx.restart_count})


def test_a_killed_rank_starts_again_and_the_rows_are_not_computed_again(spark, notes, tmp_path):
    computed = spark.sparkContext.accumulator(0)

    def count(batches):
        for batch in batches:
            computed.add(batch.num_rows)
            yield batch

    frame = spark.range(0, 200, 1, 2).mapInArrow(count, "id long")
    args = (notes, str(tmp_path))
    datasets = {"train": frame}
    cluster = TorchCluster.run(spark, dies_once, args, workers=2, datasets=datasets, restart=True)
    cluster.shutdown()
    nodes = notes.read()
    assert {node["restarts"] for node in nodes.values()} == {1}
    taken = [i for node in nodes.values() for batch in node["taken"] for i in batch]
    assert set(taken) == set(range(200))


def test_errors_are_reported_in_one_line(spark, notes):
    with pytest.raises(TypeError, match=r"dataset 'train' is a builtins.list, which is not"):
        TorchCluster.run(spark, take_epochs, None, datasets={"train": [1, 2]})

    with pytest.raises(TypeError, match=r"datasets is a DataFrame, but must be a dict"):
        TorchCluster.run(spark, take_epochs, None, datasets=spark.range(5))
    with pytest.raises(ValueError, match=r"workers is '2': give an integer, or \(least, most\)"):
        TorchCluster.run(spark, take_epochs, None, workers="2")
    folder = {"datasets": {"train": spark.range(5)}, "checkpoint_dir": "/dev/null/run"}
    with pytest.raises(
        HearthError, match=r"\(checkpoint_dir\) cannot be written to: /dev/null/run"
    ):
        TorchCluster.run(spark, take_epochs, None, **folder)

    def unknown(_, ctx):
        ctx.dataset("test", 5)

    cluster = TorchCluster.run(spark, unknown, workers=1, datasets={"train": spark.range(5)})
    with pytest.raises(NodeError, match=r"the cluster has no dataset 'test' \(it has train\)"):
        cluster.shutdown()


def test_rows_that_cannot_be_computed_end_the_cluster_with_the_reason(spark, notes):
    def fail(batches):
        raise ZeroDivisionError("these rows are bad")
        yield from batches

    frame = spark.range(10).mapInArrow(fail, "id long")
    cluster = TorchCluster.run(
        spark, take_epochs, (notes, {"batch_size": 2}, 1, None), datasets={"train": frame}
    )
    with pytest.raises(NodeError, match=r"the rows of dataset 'train': .*these rows are bad"):
        cluster.shutdown()


@pytest.mark.parametrize("spool", [True, False])
def test_ranks_read_files_themselves_next_to_a_frame_of_another_dataset(
    spark, notes, tmp_path, spool
):
    import hearth.data

    folder = str(tmp_path / "rows")
    spark.range(0, 700, 1, 3).selectExpr("id", "cast(id as string) text").write.parquet(folder)

    def main(notes, ctx):
        loader = ctx.dataset("train", 16, uneven="weight")
        found = []
        for _ in range(2):
            rows = []
            for batch in loader:
                assert batch["text"] == [str(i) for i in batch["id"].tolist()]
                rows += batch["id"][batch["row_weight"] > 0].tolist()
            found.append(rows)
        checked = [i for (ids,) in ctx.dataset("eval", 8, ("id",), False) for i in ids.tolist()]
        notes.write(ctx, [*found, checked])

    datasets = {"train": hearth.data.parquet(folder, spool=spool), "eval": spark.range(30)}
    TorchCluster.run(spark, main, notes, workers=2, datasets=datasets).shutdown()
    nodes = notes.read()
    for epoch in (0, 1):
        assert sorted(i for node in nodes.values() for i in node[epoch]) == list(range(700))
    assert nodes["worker0"][0] != nodes["worker0"][1]
    assert {i for node in nodes.values() for i in node[2]} == set(range(30))


def test_files_that_cannot_be_read_end_the_cluster_with_the_reason(spark, notes, tmp_path):
    import hearth.data

    folder = tmp_path / "rows"
    spark.range(0, 100, 1, 2).write.parquet(str(folder))
    source = hearth.data.parquet(str(folder)).pin()
    file = next(folder.glob("*.parquet"))
    file.write_bytes(file.read_bytes() + b"more")
    args = (notes, {"batch_size": 8}, 1, None)
    cluster = TorchCluster.run(spark, take_epochs, args, workers=1, datasets={"train": source})
    with pytest.raises(NodeError, match=r"dataset 'train' cannot be read: .*\.parquet"):
        cluster.shutdown()


@pytest.mark.parametrize("kind", ["frame", "parquet", "streamed"])
def test_a_column_of_an_unsupported_type_is_an_error_only_if_it_is_requested(spark, tmp_path, kind):
    import hearth.data

    rows = spark.range(40).selectExpr("id", "date'2026-01-01' day", "struct(now() at) nested")
    if kind != "frame":
        rows.write.parquet(str(tmp_path / "rows"))
        rows = hearth.data.parquet(str(tmp_path / "rows"), spool=kind == "parquet")

    def main(columns, ctx):
        return sum(len(batch[0]) for batch in ctx.dataset("train", 8, columns))

    def start(columns, rows):
        return TorchCluster.run(spark, main, columns, datasets={"train": rows})

    assert start(("id",), rows).result() == [40]
    for columns in (("id", "day"), None):
        with pytest.raises(
            NodeError, match=r"column 'day' of dataset 'train' has the type date.*columns=\)"
        ):
            start(columns, rows).shutdown()
    if kind == "frame":
        with pytest.raises(ValueError, match="column 'day' of dataset 'train' has the type date"):
            start(("day",), rows.select("day"))


def test_a_column_whose_name_differs_in_case_is_delivered(spark):
    def main(_, ctx):
        return [batch[0].tolist() for batch in ctx.dataset("train", 8, ("day",))]

    rows = spark.sql("SELECT date'2026-01-01' AS Day, 7 AS day")
    cluster = TorchCluster.run(spark, main, datasets={"train": rows})
    assert cluster.result() == [[[7]]]


def test_a_dataset_without_rows_is_reported(spark, caplog):
    def main(_, ctx):
        return len(list(ctx.dataset("train", 8)))

    datasets = {"train": spark.range(40).where("id < 0")}
    assert TorchCluster.run(spark, main, datasets=datasets).result() == [0]
    assert "dataset 'train' has no rows" in caplog.text
