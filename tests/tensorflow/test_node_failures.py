"""The driver soon reports a failure in a node, with the node's own message."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from hearth.cluster.errors import (
    ClusterError,
    FeedTimeoutError,
    NodeError,
    ReservationTimeoutError,
)
from tensorflowonspark import TFCluster

from conftest import MARK, no_node_left  # isort: skip

SPARK = TFCluster.InputMode.SPARK
SOON_S = 30  # a tenth of a second on an idle machine


def run(sc, main, arguments=None, nodes=2, ps=0, **options):
    return TFCluster.run(sc, main, arguments or {}, nodes, ps, **options)


def raises(notes, ctx):
    ctx.get_data_feed().next_batch(10)
    notes.write(ctx, time.time())
    raise ValueError("these rows are bad")


def exits(notes, ctx):
    ctx.get_data_feed().next_batch(10)
    notes.write(ctx, time.time())
    sys.exit(3)


def dies(notes, ctx):
    ctx.get_data_feed().next_batch(10)
    notes.write(ctx, time.time())
    os.kill(os.getpid(), signal.SIGKILL)


WORDS = {
    raises: r"worker:\d on host \S+ failed: ValueError: these rows are bad\nTraceback (.|\n)*raise",
    exits: r"worker:\d on host \S+ failed: its main function called sys\.exit\(3\)",
    dies: r"worker:\d on host \S+ failed: its process was killed by SIGKILL",
}


@pytest.mark.parametrize("main", WORDS)
def test_a_nodes_end_reaches_train_soon_and_shutdown_again(sc, main, notes):
    cluster = run(sc, main, notes, input_mode=SPARK)
    with pytest.raises(NodeError, match=WORDS[main]):
        cluster.train(sc.parallelize(range(100000), 6), num_epochs=1)
    assert time.time() - min(notes.read().values()) < SOON_S
    for _ in range(2):
        with pytest.raises(NodeError, match=WORDS[main]):
            cluster.shutdown()
    assert no_node_left()


def test_a_nodes_end_reaches_the_action_on_an_inference(sc, notes):
    cluster = run(sc, raises, notes, input_mode=SPARK)
    results = cluster.inference(sc.parallelize(range(100000), 6))
    with pytest.raises(Exception, match="these rows are bad"):
        results.map(lambda x: x).count()
    assert time.time() - min(notes.read().values()) < SOON_S
    with pytest.raises(NodeError, match="these rows are bad"):
        cluster.shutdown()


def test_a_late_exception_is_not_lost(sc):
    def main(arguments, ctx):
        feed = ctx.get_data_feed()
        while not feed.should_stop():
            feed.next_batch(100)
        raise RuntimeError("cannot export")

    cluster = run(sc, main, input_mode=SPARK)
    cluster.train(sc.parallelize(range(100), 2), num_epochs=1)
    with pytest.raises(
        NodeError, match=r"worker:\d on host \S+ failed: RuntimeError: cannot export"
    ):
        cluster.shutdown()


def test_a_failure_without_feed_reaches_shutdown(sc, tmp_path):
    def main(up, ctx):
        if ctx.task_index == 1:
            while not os.path.exists(up):  # otherwise run() might raise it
                time.sleep(0.05)
            raise ValueError("no such file")
        threading.Event().wait()

    cluster = run(sc, main, str(tmp_path / "up"))
    (tmp_path / "up").touch()
    start = time.monotonic()
    with pytest.raises(NodeError, match=r"worker:1 on host .* failed: ValueError: no such file"):
        cluster.shutdown()
    assert time.monotonic() - start < 2 * SOON_S
    assert no_node_left()


def test_a_node_that_takes_no_rows_ends_the_feed_at_its_timeout(sc):
    def main(arguments, ctx):
        threading.Event().wait()

    cluster = run(sc, main, input_mode=SPARK)
    with pytest.raises(FeedTimeoutError, match=r"Timeout while feeding partition: worker:.* 2 s"):
        cluster.train(sc.parallelize(range(100), 2), num_epochs=1, feed_timeout=2)
    with pytest.raises(ClusterError, match="did not end within 1 s"):
        cluster.shutdown(timeout=1)
    assert no_node_left()


def test_a_main_function_that_returns_too_early_is_named(sc):
    def main(arguments, ctx):
        ctx.get_data_feed().next_batch(1)

    cluster = run(sc, main, input_mode=SPARK)
    with pytest.raises(
        NodeError,
        match=r"worker:\d on host \S+ takes no more rows: its main function has ret.*terminate",
    ):
        cluster.train(sc.parallelize(range(1000), 8), num_epochs=1)
    cluster.shutdown()


def test_too_many_results_are_the_nodes_error(sc):
    def main(arguments, ctx):
        feed = ctx.get_data_feed(train_mode=False)
        feed.batch_results([*feed.next_batch(2), "one more"])

    cluster = run(sc, main, nodes=1, input_mode=SPARK)
    with pytest.raises(Exception, match="got 3 results, but only 2 rows"):
        cluster.inference(sc.parallelize(range(10), 1)).collect()
    with pytest.raises(NodeError):
        cluster.shutdown()


def test_missing_nodes_are_named_with_the_likely_reason(sc):
    start = time.monotonic()
    words = r"not all nodes can start.*rank 2 of 3.*2 for 3 nodes"
    with pytest.raises(ReservationTimeoutError, match=words):
        run(sc, raises, nodes=3, input_mode=SPARK, reservation_timeout=6)
    assert time.monotonic() - start < 6 + SOON_S
    assert no_node_left()


def test_shutdown_works_from_another_thread_and_a_failed_cluster_leaves_no_trace(sc):
    def fails(arguments, ctx):
        raise ValueError("at once")

    def works(arguments, ctx):
        pass

    errors = []

    def end(cluster):
        try:
            cluster.shutdown()
        except NodeError as error:
            errors.append(str(error))

    for main, count in ((fails, 1), (works, 1)):
        try:
            cluster = run(sc, main)
        except NodeError as error:  # it failed before all nodes had registered
            errors.append(str(error))
            continue
        thread = threading.Thread(target=end, args=(cluster,))
        thread.start()
        thread.join(120)
        assert not thread.is_alive()
        assert len(errors) == count
    assert "at once" in errors[0]


def test_with_ends_the_cluster_also_after_the_drivers_own_error(sc):
    def main(arguments, ctx):
        threading.Event().wait()

    with pytest.raises(KeyError), run(sc, main, input_mode=SPARK):
        raise KeyError("of the driver")
    assert no_node_left()


def test_a_killed_executor_is_never_silent(sc):
    def main(arguments, ctx):
        feed = ctx.get_data_feed()
        while not feed.should_stop():
            feed.next_batch(1)
            time.sleep(0.001)

    cluster = run(sc, main, input_mode=SPARK)
    victim = cluster.cluster_info[1]["executor_pid"]
    threading.Timer(2, os.kill, (victim, signal.SIGKILL)).start()
    with pytest.raises(NodeError, match=r"worker:\d on host \S+ went away"):
        cluster.train(sc.parallelize(range(1_000_000), 8), num_epochs=1)
    with pytest.raises(NodeError, match="went away"):
        cluster.shutdown()
    assert no_node_left()


def test_a_dead_driver_leaves_no_node(tmp_path):
    code = f"""
        import os, signal
        from hearth.spark import session as spark_session
        from tensorflowonspark import TFCluster
        session = spark_session.start("dies", executors=1)
        def main(arguments, ctx):
            import threading
            threading.Event().wait()
        TFCluster.run(session, main, {{}}, 1, 0, input_mode=TFCluster.InputMode.SPARK)
        open({str(tmp_path / "up")!r}, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    mark = {MARK: os.environ.get(MARK, "alone") + "-dies"}
    driver = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **mark, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
    )
    assert driver.returncode == -signal.SIGKILL
    assert (tmp_path / "up").exists()
    assert no_node_left()


def test_a_driver_without_shutdown_ends_with_its_own_error(tmp_path):
    code = """
        from hearth.spark import session as spark_session
        from tensorflowonspark import TFCluster
        session = spark_session.start("forgets", master="local[1]")
        def main(arguments, ctx):
            import threading
            threading.Event().wait()
        cluster = TFCluster.run(session, main, {}, 1, 0, input_mode=TFCluster.InputMode.SPARK)
        raise SystemExit(7)
    """
    mark = {MARK: os.environ.get(MARK, "alone") + "-forgets"}
    driver = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **mark, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
    )
    assert driver.returncode == 7
    assert no_node_left()


def test_only_a_program_that_asks_for_it_is_ended_by_an_exit(sc, monkeypatch):
    def fails(arguments, ctx):
        raise ValueError("of the node")

    monkeypatch.setenv("TFOS_EXIT_ON_FAILURE", "1")
    with pytest.raises(SystemExit) as end:
        run(sc, fails).shutdown()
    assert end.value.code == 1
    assert "ValueError: of the node" in str(end.value.__cause__)
    assert sc.parallelize(range(3)).sum() == 3
