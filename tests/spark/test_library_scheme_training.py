"""Trains with rows, model, snapshots and results on fsspec's local:, a file system that several
processes share and that neither the core nor Spark can access without the library.
"""

import os
import signal
from pathlib import Path

import pytest
from faults import FaultInjector, Quiet
from waiting import wait_until

from hearth.caffeonspark import CaffeOnSpark, Config, DataSource
from hearth.files.uri import write_text


@pytest.fixture
def train(spark, digits, tmp_path):
    root = f"local://{tmp_path}/models"

    def train(watcher, folder, **flags):
        solver = digits.solver(
            "cos", max_iter=300, snapshot=20, random_seed=5, snapshot_prefix='"lenet"'
        )
        net = Path(solver.replace("_solver", "_net"))
        rows = digits.table("raw", "train")
        net.write_text(net.read_text().replace("file:work/raw/train.parquet", f"local://{rows}"))
        model = f"{root}/{folder}/lenet.caffemodel"
        conf = Config(spark, {"conf": solver, "model": model, "clusterSize": "2", **flags})
        CaffeOnSpark(spark, watcher).train(DataSource(spark).getSource(conf, True))
        return tmp_path / "models" / folder

    return train


# Without a spill. Other such tests: test_spill_off.py, and test_recovery.py's streamed rows.
@pytest.mark.parametrize("spill", ["on", pytest.param("off", marks=pytest.mark.long)])
def test_an_interrupted_training_resumes_from_remote_files(train, spill):
    unbroken = Quiet()
    whole = train(unbroken, "whole", spill=spill)
    injector = FaultInjector("trainer", 35)
    there = whole.parent / "again"

    def watch(event):
        due = event.get("event") == "progress" and event["iteration"] >= injector.iteration
        if due and injector.injected_at is None:
            # Snapshots are uploaded in the background, so a stopped trainer keeps the training from
            # ending before.
            for pid in injector.ranks()[:1]:
                os.kill(pid, signal.SIGSTOP)
            assert wait_until(lambda: list(there.glob("lenet_iter_*.hearth.json")), 8)
        injector(event)

    again = train(watch, "again", spill=spill)
    assert injector.landed
    assert [event["iteration"] for event in injector.of("ready")][-1] >= 20
    names = {file.name for file in again.iterdir()}
    assert {"lenet.caffemodel", "lenet_iter_300.hearth.json"} <= names
    assert not any(name.startswith(".") for name in names)
    assert (whole / "lenet.caffemodel").read_bytes() == (again / "lenet.caffemodel").read_bytes()
    said = [event["text"] for event in injector.of("log") if "bytes of files" in event["text"]]
    assert len(said) == 1
    assert said[0].endswith("0 % of them on their own hosts")


def test_results_are_remote(spark, tmp_path):
    write_text(f"local://{tmp_path}/below/means.txt", "loss: 1\n", spark)
    assert (tmp_path / "below" / "means.txt").read_text() == "loss: 1\n"
