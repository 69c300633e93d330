"""Clusters on two executors: roles, feeds, inference, epochs, several clusters in a row."""

import json
import os
import socket

import numpy as np
import pytest

from hearth.cluster.errors import NodeError
from tensorflowonspark import TFCluster, reservation

from conftest import Notes, no_node_left  # isort: skip
from test_restart import wait_for  # isort: skip

SPARK = TFCluster.InputMode.SPARK


def note_role(notes: Notes, ctx):
    notes.write(
        ctx,
        {
            "config": os.environ.get("TF_CONFIG"),
            "spec": ctx.cluster_spec,
            "workers": ctx.num_workers,
            "gpus": os.environ["CUDA_VISIBLE_DEVICES"],
            "socket": ctx.tmp_socket is not None,
            "pid": os.getpid(),
        },
    )


def take_all(notes: Notes, ctx):
    """Takes all batches; notes their rows and sizes."""
    feed = ctx.get_data_feed()
    rows, sizes = [], []
    while not feed.should_stop():
        batch = feed.next_batch(64)
        rows += batch
        sizes.append(len(batch))
    notes.write(ctx, {"rows": rows, "sizes": sizes})


def rows_of(notes):
    return sorted(row for note in notes.read().values() for row in note["rows"])


def run(sc, main, notes, nodes=2, ps=0, **options):
    return TFCluster.run(sc, main, notes, nodes, ps, **options)


def test_a_chief_and_a_worker_learn_of_each_other(sc, notes):
    run(sc, note_role, notes, master_node="chief").shutdown()
    found = notes.read()
    assert list(found) == ["chief0", "worker0"]
    configs = {name: json.loads(note["config"]) for name, note in found.items()}
    assert configs["chief0"]["task"] == {"type": "chief", "index": 0}
    assert configs["worker0"]["task"] == {"type": "worker", "index": 0}
    cluster = configs["chief0"]["cluster"]
    assert cluster == configs["worker0"]["cluster"] == found["chief0"]["spec"]
    assert [len(cluster["chief"]), len(cluster["worker"])] == [1, 1]
    assert cluster["chief"] != cluster["worker"]
    host, port = cluster["chief"][0].split(":")
    with socket.socket() as free:  # its port was released before main started
        free.bind((host, int(port)))


def test_without_a_chief_there_is_no_tf_config(sc, notes):
    with run(sc, note_role, notes) as cluster:
        assert cluster.tensorboard_url() is None
    found = notes.read()
    assert list(found) == ["worker0", "worker1"]
    assert all(note["config"] is None and note["workers"] == 2 for note in found.values())
    assert all(note["gpus"] == "" and not note["socket"] for note in found.values())


def test_a_kept_port_is_bound_until_it_is_released(sc, notes):
    def main(notes, ctx):
        port = int(ctx.cluster_spec["worker"][ctx.task_index].split(":")[1])
        bound = ctx.tmp_socket.getsockname()[1] == port
        ctx.release_port()
        notes.write(ctx, [bound, ctx.tmp_socket is None])

    run(sc, main, notes, release_port=False).shutdown()
    assert list(notes.read().values()) == [[True, True]] * 2


def test_a_parameter_server_gets_no_rows_and_is_ended(sc, notes):
    def main(notes, ctx):
        if ctx.job_name == "ps":
            notes.write(ctx, "serves")
            import threading

            threading.Event().wait()
        notes.wait_for("ps0")  # otherwise the server may be ended before it starts
        take_all(notes, ctx)

    cluster = run(sc, main, notes, ps=1, input_mode=SPARK)
    cluster.train(sc.parallelize(range(100), 3), num_epochs=1)
    cluster.shutdown()
    found = notes.read()
    assert found["ps0"] == "serves"
    assert sorted(found["worker0"]["rows"]) == list(range(100))
    assert no_node_left()


def test_parameter_servers_of_the_driver_are_its_children(sc, notes):
    def main(notes, ctx):
        notes.write(ctx, [os.getpid(), os.getppid()])
        if ctx.job_name == "ps":
            import threading

            threading.Event().wait()
        notes.wait_for("ps0")  # otherwise the server may be ended before it starts

    run(sc, main, notes, nodes=3, ps=1, driver_ps_nodes=True).shutdown()
    assert list(notes.read()) == ["ps0", "worker0", "worker1"]


@pytest.mark.parametrize("options", [{"eval_node": True}, {"driver_ps_nodes": True}])
def test_nodes_without_rows_are_refused_in_spark_mode(sc, notes, options):
    with pytest.raises(ValueError, match=r"need InputMode\.TENSORFLOW"):
        run(sc, take_all, notes, nodes=3, ps=1, input_mode=SPARK, **options)


@pytest.mark.parametrize("epochs", [1, 3])
def test_every_row_is_seen_once_per_epoch(sc, notes, epochs):
    rows = sc.parallelize(range(1000), 2).union(sc.parallelize(range(1000, 1010), 5))
    cluster = run(sc, take_all, notes, input_mode=SPARK)
    cluster.train(rows, num_epochs=epochs)
    cluster.shutdown()
    assert rows_of(notes) == sorted([*range(1010)] * epochs)
    for note in notes.read().values():
        assert set(note["sizes"][:-1]) <= {64}


def test_later_epochs_replay_only_the_rows_of_the_same_train_call(sc, notes):
    cluster = run(sc, take_all, notes, input_mode=SPARK)
    for first in (0, 100):
        cluster.train(sc.parallelize(range(first, first + 40), 3), num_epochs=2)
    cluster.shutdown()
    assert rows_of(notes) == sorted([*range(40), *range(100, 140)] * 2)


def test_later_epochs_without_a_program_that_takes_them_are_an_error(sc, notes):
    def take_forty(notes, ctx):
        feed, rows = ctx.get_data_feed(), []
        while len(rows) < 40:
            rows += feed.next_batch(10)
        notes.write(ctx, {"rows": rows})

    cluster = run(sc, take_forty, notes, nodes=1, input_mode=SPARK)
    with pytest.raises(NodeError, match="main function has returned before the later epochs"):
        cluster.train(sc.parallelize(range(40), 3), num_epochs=2, feed_timeout=40)
    cluster.shutdown()
    assert rows_of(notes) == [*range(40)]


def test_later_epochs_of_a_feed_that_was_ended_are_an_error(sc, notes, monkeypatch):
    from hearth.cluster.driver.row_sender import RowSender

    cluster = run(sc, take_all, notes, nodes=1, input_mode=SPARK)
    replay = RowSender._replay

    def end_before(*arguments):  # as another thread's shutdown() may do
        cluster.running.broadcast({"op": "end"})
        replay(*arguments)

    monkeypatch.setattr(RowSender, "_replay", end_before)
    with pytest.raises(NodeError, match=r"ended by shutdown|returned before the later epochs"):
        cluster.train(sc.parallelize(range(40), 3), num_epochs=2, feed_timeout=40)
    cluster.shutdown()
    assert rows_of(notes) == [*range(40)]


def test_no_epochs_mean_ten(sc, notes):
    cluster = run(sc, take_all, notes, input_mode=SPARK)
    cluster.train(sc.parallelize(range(20), 2))
    with pytest.raises(AssertionError):
        cluster.train(sc.parallelize(range(20), 2), num_epochs=-1)
    with pytest.raises(AssertionError):
        cluster.train(sc.parallelize(range(20), 2), qname="none")
    cluster.shutdown()
    assert rows_of(notes) == sorted([*range(20)] * 10)


def test_train_needs_input_mode_spark(sc, notes):
    with run(sc, note_role, notes) as cluster, pytest.raises(AssertionError):
        cluster.train(sc.parallelize(range(20), 2))


ROWS = [
    1, 2.5, "text", b"bytes", None, (1, None), [1.0, [2.0]], {"key": (1, 2)}, (), ("a", 1),
    np.arange(3), np.float32(1.5), {1, 2}, 2**80,
]  # fmt: skip


@pytest.mark.parametrize("made", ["held by Spark", "made by the stage"])
def test_rows_keep_their_types(sc, notes, made):
    def main(notes, ctx):
        feed = ctx.get_data_feed()
        rows = []
        while not feed.should_stop():
            rows += feed.next_batch(3)
        notes.write(ctx, [f"{type(row).__name__} {row!r}" for row in rows])

    rdd = sc.parallelize(ROWS, 1)
    if made == "made by the stage":
        rdd = rdd.map(lambda row: row)
    cluster = run(sc, main, notes, nodes=1, input_mode=SPARK)
    cluster.train(rdd, num_epochs=1)
    cluster.shutdown()
    assert notes.read()["worker0"] == [f"{type(row).__name__} {row!r}" for row in ROWS]


def test_rows_of_a_text_file_and_of_a_dataframe_arrive(sc, spark, notes, tmp_path):
    (tmp_path / "lines.txt").write_text("a\nb\nc\n")

    def main(notes, ctx):
        feed = ctx.get_data_feed()
        rows = []
        while not feed.should_stop():
            rows += feed.next_batch(2)
        notes.write(ctx, [[type(row).__name__, row] for row in rows])

    cluster = run(sc, main, notes, nodes=1, input_mode=SPARK)
    cluster.train(sc.textFile(str(tmp_path / "lines.txt"), 1), num_epochs=1)
    cluster.train(spark.createDataFrame([(1, "x")], "n int, s string").rdd, num_epochs=1)
    cluster.shutdown()
    assert notes.read()["worker0"] == [["str", "a"], ["str", "b"], ["str", "c"], ["Row", [1, "x"]]]


def test_an_input_mapping_gives_tensors_in_the_order_of_the_columns(sc, notes):
    def main(notes, ctx):
        feed = ctx.get_data_feed(input_mapping={"b": "y", "a": "x"})
        batch = feed.next_batch(10)
        notes.write(ctx, [list(batch), batch])

    cluster = run(sc, main, notes, nodes=1, input_mode=SPARK)
    cluster.train(sc.parallelize([(1, 10), (2, 20)], 1), num_epochs=1)
    cluster.shutdown()
    assert notes.read()["worker0"] == [["x", "y"], {"x": [1, 2], "y": [10, 20]}]


def square(notes: Notes, ctx):
    feed = ctx.get_data_feed(train_mode=False)
    sizes = []
    while not feed.should_stop():
        batch = feed.next_batch(30)
        sizes.append(len(batch))
        if batch:
            feed.batch_results([row[0] ** 2 for row in batch])
    notes.write(ctx, sizes)


def test_inference_gives_one_result_per_row_in_order_and_lazily(sc, notes):
    cluster = run(sc, square, notes, input_mode=SPARK)
    rows = sc.parallelize([[x] for x in range(1000)], 12).union(sc.parallelize([], 3))
    squares = cluster.inference(rows)
    assert squares.collect() == [x * x for x in range(1000)]
    assert squares.map(lambda x: x + 1).filter(lambda x: x < 3).collect() == [1, 2]
    assert squares.count() == 1000
    cluster.shutdown()
    sizes = [size for sizes in notes.read().values() for size in sizes if size]
    wanted = []  # no batch spans two partitions
    for count in rows.glom().map(len).collect() * 3:
        wanted += [30] * (count // 30) + [count % 30] * (count % 30 > 0)
    assert sorted(sizes) == sorted(wanted)


def test_inference_is_lazy(sc, notes):
    cluster = run(sc, square, notes, input_mode=SPARK)
    cluster.inference(sc.parallelize([[x] for x in range(100)], 2))
    cluster.shutdown()
    assert [sum(sizes) for sizes in notes.read().values()] == [0, 0]


def test_a_dataframe_is_inferred_by_columns(sc, spark, notes):
    def main(notes, ctx):
        feed = ctx.get_data_feed(train_mode=False)
        while not feed.should_stop():
            batch = feed.next_numpy(50)
            if batch is not None:
                feed.batch_results((batch["id"] * 2).tolist())
        notes.write(ctx, None)

    cluster = run(sc, main, notes, input_mode=SPARK)
    doubled = cluster.inference(spark.range(0, 300, 1, 4))
    assert doubled.collect() == [2 * x for x in range(300)]
    frame = cluster.inference(spark.range(0, 10, 1, 2), schema="long")
    assert [row.value for row in frame.collect()] == [2 * x for x in range(10)]
    cluster.shutdown()


def test_a_dataframe_is_trained_on_by_columns(sc, spark, notes):
    def main(notes, ctx):
        feed = ctx.get_data_feed()
        total, kinds = [0.0, 0], set()
        while not feed.should_stop():
            batch = feed.next_numpy(32)
            if batch is not None:
                kinds.add(f"{batch['x'].dtype} {batch['x'].shape[1:]} {batch['n'].dtype}")
                total[0] += float(batch["x"].sum())
                total[1] += len(batch["n"])
        notes.write(ctx, [total, sorted(kinds)])

    rows = spark.range(0, 500, 1, 3).selectExpr(
        "cast(id as int) as n", "array(cast(id as float), cast(1 as float)) as x"
    )
    cluster = run(sc, main, notes, input_mode=SPARK)
    cluster.train(rows, num_epochs=2)
    cluster.shutdown()
    found = notes.read().values()
    assert sum(total[0] for total, _ in found) == 2 * (sum(range(500)) + 500)
    assert sum(total[1] for total, _ in found) == 1000
    assert all(kinds == ["float32 (2,) int32"] for _, kinds in found)


def test_terminate_skips_the_rest_and_train_returns(sc, notes):
    def main(notes, ctx):
        feed = ctx.get_data_feed()
        rows = feed.next_batch(100)
        feed.terminate()
        notes.write(ctx, [len(rows), feed.should_stop(), feed.next_batch(10)])

    cluster = run(sc, main, notes, input_mode=SPARK)
    cluster.train(sc.parallelize(range(300000), 8), num_epochs=2)
    cluster.shutdown()
    assert list(notes.read().values()) == [[100, True, []]] * 2


def test_two_feeds_do_not_mix(sc, notes):
    def main(notes, ctx):
        train, check = ctx.get_data_feed(), ctx.get_data_feed(qname_in="validation")
        held_out = check.next_batch(4)
        rows = []
        while not train.should_stop():
            rows += train.next_batch(10)
        notes.write(ctx, [sorted(rows), sorted(held_out)])

    queues = ["input", "validation", "output", "error"]
    cluster = run(sc, main, notes, nodes=1, input_mode=SPARK, queues=queues)
    cluster.train(sc.parallelize(range(100, 104), 1), num_epochs=1, qname="validation")
    cluster.train(sc.parallelize(range(50), 2), num_epochs=1)
    cluster.shutdown()
    assert notes.read()["worker0"] == [list(range(50)), list(range(100, 104))]


def test_a_list_of_arguments_becomes_the_nodes_command_line(sc, tmp_path):
    def main(argv, ctx):
        import sys

        with open(argv[1], "w", encoding="utf-8") as file:
            file.write(repr(sys.argv))

    path = tmp_path / "argv"
    TFCluster.run(sc, main, ["program", str(path)], 1, 0).shutdown()
    assert path.read_text() == repr(["program", str(path)])


def test_tensorboard_is_started_found_and_ended(sc, notes, tmp_path):
    program, started = tmp_path / "tensorboard", tmp_path / "started"
    program.write_text(f"#!/bin/sh\necho $$ $@ > {started}\nexec sleep 600\n")
    program.chmod(0o755)
    sc.addFile(str(program))  # searched on sys.path: running executors' PATH is fixed

    def main(notes, ctx):
        notes.write(ctx, None)

    cluster = run(sc, main, notes, tensorboard=True, log_dir="/logs", input_mode=SPARK)
    node = cluster.cluster_info[0]
    assert cluster.tensorboard_url() == f"http://{node['host']}:{node['tb_port']}"
    wait_for(lambda: started.exists() and started.read_text().endswith("\n"))
    cluster.shutdown()
    pid, *arguments = started.read_text().split()
    assert int(pid) == node["tb_pid"]
    assert arguments == ["--logdir=/logs", f"--port={node['tb_port']}"]
    assert no_node_left()
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"))


def test_the_server_and_coordinator_listen_on_configured_addresses(sc, notes, monkeypatch):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setenv("TFOS_SERVER_HOST", "127.0.0.1")
    monkeypatch.setenv("TFOS_SERVER_PORT", f"{port}-{port + 3}")
    cluster = run(sc, note_role, notes)
    ports = {cluster.cluster_meta["server_addr"][1], cluster.cluster_meta["coordinator"][1]}
    assert len(ports) == 2 and ports <= set(range(port, port + 4))
    cluster.shutdown()


def test_a_client_ends_the_clusters_server(sc, notes):
    cluster = run(sc, note_role, notes)
    client = reservation.Client(cluster.cluster_meta["server_addr"])
    assert client.request_stop() == "OK"
    assert cluster.server.done
    client.close()
    cluster.shutdown()
