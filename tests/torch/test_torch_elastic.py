"""workers=(least, most): as many ranks as there are slots; each row is taken once per epoch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hearth.spark.executors import known_executors
from hearth.spark.slots import slots_now
from hearth.torch import TorchCluster

ROWS, EPOCHS = 400, 3


def counts_rows(folder, ctx):
    """Notes the ids of each step; rank 0 saves the position after each step."""
    import torch.distributed as dist

    dist.init_process_group(ctx.backend)
    folder = Path(folder)
    loader = ctx.dataset("train", 5, uneven="weight")
    saved = folder / "state.json"
    step, kept = 0, {"step": 0}
    if saved.exists():
        kept = json.loads(saved.read_text())
        loader.load_state_dict(kept["data"])
        step = kept["step"]
    while loader.epoch < EPOCHS:
        epoch = loader.epoch
        for batch in loader:
            step += 1
            ids = [i for i, w in zip(batch["id"], batch["row_weight"], strict=True) if w > 0]
            note = {"step": step, "epoch": epoch, "ids": [int(i) for i in ids]}
            with open(folder / f"{ctx.restart_count}-{ctx.rank}.notes", "a") as file:
                file.write(json.dumps({**note, "world": ctx.world_size}) + "\n")
            dist.barrier()
            if ctx.rank == 0:
                text = json.dumps({"step": step, "data": loader.state_dict()})
                (folder / "new.json").write_text(text)
                os.replace(folder / "new.json", saved)
            dist.barrier()
            ctx.mgr.note_commit()
            time.sleep(0.05)
            while ctx.world_size == 1 and step >= kept["step"] + 10:  # wait for a second rank
                ctx.mgr.note_commit()
                time.sleep(0.2)


def read(folder):
    """{(step, rank): note}, with each step's notes from the last start that took it."""
    found = {}
    for file in sorted(Path(folder).glob("*.notes"), key=lambda f: int(f.name.split("-")[0])):
        start, rank = file.stem.split("-")
        for line in file.read_text().splitlines():
            note = json.loads(line)
            for key in [k for k in found if k[0] == note["step"] and found[k][0] != start]:
                del found[key]
            found[note["step"], rank] = start, note
    return {key: note for key, (_, note) in found.items()}


def wait_for(condition):
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until, "nothing happened for two minutes"
        time.sleep(0.05)


@pytest.fixture
def short_wait(spark):
    spark.conf.set("spark.hearth.executorWait", "1s")
    yield
    spark.conf.unset("spark.hearth.executorWait")


@pytest.mark.long
def test_ranks_become_fewer_and_more_and_every_row_counts_once(spark, tmp_path, short_wait):
    context = spark.sparkContext._jsc.sc()
    frame = spark.range(0, ROWS, 1, 4)
    cluster = TorchCluster.run(
        spark, counts_rows, str(tmp_path), workers=(1, 2), restart=True, datasets={"train": frame}
    )
    ends = threading.Thread(target=cluster.shutdown, daemon=True)
    ends.start()
    try:
        wait_for(lambda: len(read(tmp_path)) > 20)
        context.killExecutor(executor_of(spark))  # Spark does not replace it
        wait_for(lambda: any(note["world"] == 1 for note in read(tmp_path).values()))
        want_executors(spark, 2)
        ends.join(240)
        assert not ends.is_alive()
    finally:
        cluster.end()
        want_executors(spark, 2)
        wait_for(lambda: slots_now(spark) == 2)
    notes = read(tmp_path)
    assert worlds(tmp_path) == [2, 1, 2]
    for epoch in range(EPOCHS):
        ids = sorted(i for n in notes.values() if n["epoch"] == epoch for i in n["ids"])
        assert ids == list(range(ROWS))


def worlds(folder):
    """The number of ranks in each start."""
    firsts = sorted(Path(folder).glob("*-0.notes"), key=lambda f: int(f.name.split("-")[0]))
    return [json.loads(file.read_text().splitlines()[0])["world"] for file in firsts]


def want_executors(spark, count):
    """Requests executors from Spark until there are `count`."""
    no_tasks = spark._jvm.scala.collection.immutable.HashMap()
    spark.sparkContext._jsc.sc().requestTotalExecutors(count, 0, no_tasks)


def executor_of(spark):
    """The id of a running executor."""
    found = known_executors(spark, active_only=True)
    return next(str(e.id()) for e in found if str(e.id()) != "driver")


# A job without the resource profile occupies one of the two Workers, until the first start has its
# single rank.
GROWS = """
import sys, time
from pathlib import Path
from pyspark import InheritableThread
from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests
from hearth.spark import session
from hearth.torch import TorchCluster

folder = Path(sys.argv[1])

def holds(_):
    (folder / "held").touch()
    while not (folder / "0-0").exists():
        time.sleep(0.05)

def notes_world(args, ctx):
    (folder / f"{ctx.restart_count}-{ctx.rank}").write_text(str(ctx.world_size))
    while ctx.world_size == 1:
        ctx.mgr.note_commit()
        time.sleep(0.1)

spark = session.start("grows", master="local-cluster[2,1,1024]", conf={
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.executorIdleTimeout": "5s",
    "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false",
    "spark.hearth.executorWait": "2s",
})
held = InheritableThread(target=spark.sparkContext.parallelize([0], 1).foreach, args=(holds,))
held.start()
while not (folder / "held").exists():
    time.sleep(0.05)
profile = ResourceProfileBuilder().require(TaskResourceRequests().cpus(1)).build
TorchCluster.run(
    spark, notes_world, workers=(1, 2), restart=True, profile=profile, feeds=()
).shutdown()
held.join()
spark.stop()
"""


@pytest.mark.long
@pytest.mark.timeout(600)  # half a minute on an idle machine
def test_ranks_of_a_profile_become_more_with_dynamic_allocation(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", GROWS, str(tmp_path)], capture_output=True, text=True, timeout=550
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    found = {note.name: note.read_text() for note in tmp_path.glob("*-*")}
    assert found == {"0-0": "1", "1-0": "2", "1-1": "2"}
