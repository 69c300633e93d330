"""A training that loses processes recovers, with the same result."""

import random
import re

import pytest
from faults import KINDS, FaultInjector, FullDisk, Quiet
from waiting import wait_until

from hearth import HearthError
from hearth.caffeonspark import CaffeOnSpark, DataSource

MAX_ITER = 200
HEARTBEAT_S = 10


@pytest.fixture(scope="module")
def train(spark, digits):
    """Returns a function that trains on two executors with snapshots."""

    def train(injector, rows=None, validate=False, prefix="lenet_cos", **flags):
        settings = {"max_iter": MAX_ITER, "snapshot": 20, "random_seed": 5}
        settings["snapshot_prefix"] = f'"{prefix}"'
        if validate:
            settings.update(test_interval=50, test_iter=2)
        conf = digits.config(spark, digits.solver("cos", **settings), clusterSize="2", **flags)
        sources = DataSource(spark)
        source = sources.getSource(conf, True)
        if rows is not None:
            source = sources.fromDataFrame(conf, rows, True)
        cos = CaffeOnSpark(spark, on_event=injector)
        if not validate:
            return cos.train(source)
        return cos.trainWithValidation(source, sources.getSource(conf, False)).collect()

    return train


@pytest.fixture(scope="module")
def unbroken(train):
    watcher = Quiet()
    rows = train(watcher, validate=True)
    return watcher.of("done")[0]["weights_sha256"], rows


def check_recovered(injector, unbroken):
    assert injector.landed
    restarts = injector.of("restart")
    assert len(restarts) == 1, restarts
    starts = [event["iteration"] for event in injector.of("ready")]
    assert starts[0] == 0
    assert starts[-1] >= 20  # from a snapshot, not from the beginning
    hashes = {event["weights_sha256"] for event in injector.of("done")}
    assert hashes == {unbroken[0]}
    assert wait_until(lambda: not injector.ranks(), 30)


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_is_that_of_an_unbroken_run(train, unbroken, kind):
    injector = FaultInjector(kind, random.randint(40, MAX_ITER - 80), random.randint(0, 1))
    rows = train(injector, validate=True)
    check_recovered(injector, unbroken)
    assert rows == unbroken[1]  # each validation once, with the same values
    # Only a frozen trainer is detected by the heartbeat timeout. The other faults close a
    # connection or end a Spark task.
    frozen = kind == "frozen trainer"
    silent = f"has been silent for {HEARTBEAT_S} s" in injector.of("restart")[0]["reason"]
    assert silent == frozen, injector.timeline()
    # On an idle machine, recovery takes a few seconds and the other ranks end within one.
    assert injector.seconds_to_recover() < 120 + frozen * HEARTBEAT_S, injector.timeline()
    assert injector.seconds_of_others() < 30 + frozen * HEARTBEAT_S, injector.timeline()


@pytest.fixture(scope="module")
def many_files(spark, digits):
    """The digits in 48 files."""
    folder = str(digits.folder / "work" / "many")
    spark.read.parquet(digits.table("raw", "train")).repartition(48).write.parquet(folder)
    return folder


def test_rows_from_spark_are_recomputed_identically(spark, train, many_files):
    def rows():  # a shuffle, then another one for the ranks
        return spark.read.parquet(many_files).repartition(16)

    hashes = set()
    for _ in range(2):
        reference = Quiet()
        train(reference, rows())
        hashes.add(reference.of("done")[0]["weights_sha256"])
    assert len(hashes) == 1
    injector = FaultInjector("trainer", 60, 1)
    train(injector, rows())
    check_recovered(injector, (hashes.pop(), None))
    assert not any("reads other rows" in event["text"] for event in injector.of("log"))


class Changer(FaultInjector):
    """Kills a trainer and, before the restart, creates a file that changes the rows of rank 1."""

    def __init__(self, file):
        super().__init__("trainer", 60)
        self.file = file

    def __call__(self, event):
        super().__call__(event)
        if event.get("event") == "restart":
            self.file.touch()


@pytest.mark.parametrize("on_other_rows", ["restartEpoch", "fail"])
def test_a_rank_with_changed_rows_is_named(spark, train, digits, tmp_path, on_other_rows):
    flag = tmp_path / "flag"
    name = str(flag)

    def turned(batches):
        import os

        from pyspark import TaskContext

        for batch in batches:
            other = os.path.exists(name) and TaskContext.get().partitionId() == 1
            yield batch.take(list(range(batch.num_rows))[::-1]) if other else batch

    rows = spark.read.parquet(digits.table("raw", "train")).repartition(2).localCheckpoint()
    rows = rows.mapInArrow(turned, rows.schema)
    injector = Changer(flag)
    if on_other_rows == "fail":
        with pytest.raises(HearthError, match=r"rank 1 .* reads other rows .* -onOtherRows"):
            train(injector, rows, onOtherRows="fail")
        return
    train(injector, rows)
    texts = [event["text"] for event in injector.of("log") if "reads other" in event["text"]]
    assert len(texts) == 1
    said = r"rank 1 on host \S+ reads other rows than before the snapshot of iteration \d+: the fir"
    assert re.search(said, texts[0])
    assert "(1 of 2 ranks do); epoch" in texts[0]


def test_without_a_snapshot_the_training_starts_over(train, unbroken):
    injector = FaultInjector("trainer", 1)
    train(injector)
    assert injector.landed
    assert injector.of("done")[0]["weights_sha256"] == unbroken[0]


def test_a_full_disk_costs_only_its_snapshots(train, unbroken, digits):
    disk = FullDisk(40, 120)
    train(disk, prefix="full_disk")
    assert disk.failed_snapshots()
    assert not disk.of("restart")
    assert disk.of("done")[0]["weights_sha256"] == unbroken[0]
    names = {file.name for file in digits.folder.glob("full_disk*")}
    kept = {int(re.search(r"_iter_(\d+)\.", name)[1]) for name in names}
    assert MAX_ITER in kept
    assert not kept.intersection(disk.failed_snapshots())


def test_after_max_restarts_the_failure_is_clear(train):
    class Relentless(FaultInjector):
        """Injects a fault into each generation once, ignoring late events of the previous one."""

        injected = 0

        def __call__(self, event):
            if event.get("event") == "restart":
                self.injected_at, self.landed = None, False
            super().__call__(event)

        def inject(self):
            super().inject()
            self.injected += self.landed

    injector = Relentless("trainer", 1)
    with pytest.raises(HearthError, match=r"rank \d on host .*failed after 1 restarts"):
        train(injector, maxRestarts="1")
    assert injector.injected == 2
    assert wait_until(lambda: not injector.ranks(), 30)


def test_an_error_of_the_net_is_not_retried(spark, digits):
    solver = digits.solver("memory", max_iter=5)
    with open(solver.replace("_solver", "_net"), "a", encoding="utf-8") as file:
        file.write('layer { name: "o" type: "Concat" bottom: "ip1" bottom: "conv1" top: "o" }\n')
    watcher = Quiet()
    conf = digits.config(spark, solver, clusterSize="2")
    with pytest.raises(HearthError, match=r"rank \d on host \S+ failed: .*layer 'o'"):
        CaffeOnSpark(spark, on_event=watcher).train(DataSource(spark).getSource(conf, True))
    assert not watcher.of("restart")


def test_streamed_rows_are_the_same_after_a_restart(train):
    unbroken = Quiet()
    train(unbroken, spill="off")
    injector = FaultInjector("trainer", random.randint(60, MAX_ITER - 60), 1)
    train(injector, spill="off")
    check_recovered(injector, (unbroken.of("done")[0]["weights_sha256"], None))
    assert not any("reads other rows" in event["text"] for event in injector.of("log"))
