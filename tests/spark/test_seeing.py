"""A monitored training: its page while it runs, its event file and report afterwards."""

import json
import urllib.request
from pathlib import Path

import pytest

from hearth.caffeonspark import CaffeOnSpark, DataSource, FlagError
from hearth.caffeonspark.history import SCHEMA
from hearth.tools import report, timeline


class Watcher:
    """An event listener that opens the page at each validation."""

    def __init__(self):
        self.url = None
        self.looks, self.histograms = [], []

    def __call__(self, event):
        if event["event"] == "page":
            self.url = event["url"]
        if event["event"] == "histogram":
            self.histograms.append(event)
        if event["event"] == "validation":
            with urllib.request.urlopen(self.url + "data", timeout=20) as answer:
                self.looks.append(json.load(answer))


@pytest.fixture(scope="module")
def watched(spark, digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("seen")
    solver = digits.solver("memory", max_iter=81, test_interval=40)
    flags = {"ui": True, "logDir": f"file:{folder}", "logHistograms": "40"}
    flags["timeline"] = str(folder / "timeline")
    conf = digits.config(spark, solver, clusterSize="2", **flags)
    seen, sources = Watcher(), DataSource(spark)
    train, test = sources.getSource(conf, True), sources.getSource(conf, False)
    cos = CaffeOnSpark(spark, seen)
    result = cos.trainWithValidation(train, test)
    return seen, Path(folder), result.collect(), cos.history.collect()


def test_the_page_shows_a_running_training(watched):
    seen, _, rows, _ = watched
    first, last = seen.looks[0], seen.looks[-1]
    assert first["state"] == "training" and first["max_iter"] == 81
    assert [step for step, _ in last["series"]["accuracy/test"]] == [40, 80]
    shown = [value for _, value in last["series"]["accuracy/test"]]
    assert shown == pytest.approx([row.accuracy[0] for row in rows])
    assert last["series"]["loss/train"] and last["series"]["run/images_per_s"]


def test_the_page_ends_with_the_training(watched):
    with pytest.raises(OSError):
        urllib.request.urlopen(watched[0].url, timeout=5)


def test_the_event_file_has_all_ranks_and_outputs(watched):
    _, folder, rows, _ = watched
    series = report.read_run(folder).snapshot()["series"]
    for rank in (0, 1):
        shares = [
            series[f"rank{rank}/{share}"][-1][1] for share in ("compute", "rows_wait", "ranks_wait")
        ]
        assert sum(shares) == pytest.approx(1, abs=0.01)
    assert [step for step, _ in series["loss/test"]] == [40, 80]
    assert series["accuracy/test"][-1][1] == pytest.approx(rows[-1].accuracy[0])
    assert series["loss/train"][-1][0] == 81


def test_histograms_of_weights_and_gradients_are_recorded(watched):
    found = {}
    for event in watched[0].histograms:
        found.setdefault(event["tag"], []).append(event)
    layers = [f"{layer}/{i}" for layer in ("conv1", "conv2", "ip1", "ip2") for i in (0, 1)]
    tags = [f"{kind}/{name}" for kind in ("gradients", "weights") for name in layers]
    assert sorted(found) == sorted(tags)
    for name, size in {"conv1/0": 20 * 25, "ip2/0": 10 * 500}.items():
        for kind in ("weights", "gradients"):
            seen = found[f"{kind}/{name}"]
            assert [event["iteration"] for event in seen] == [40, 80]
            assert {len(event["counts"]) for event in seen} == {30}
            assert {sum(event["counts"]) for event in seen} == {size}
            assert all(event["least"] < 0 < event["most"] for event in seen)
    (file,) = watched[1].glob("events.out.tfevents.*")
    assert all(tag.encode() in file.read_bytes() for tag in found)


def test_the_history_has_losses_and_validations(watched):
    _, _, rows, history = watched
    tested = {(r.iteration, r.output): r.value for r in history if r.phase == "TEST"}
    assert sorted(tested) == [(i, name) for i in (40, 80) for name in ("accuracy", "loss")]
    assert tested[80, "accuracy"] == pytest.approx(rows[-1].accuracy[0])
    losses = [row for row in history if (row.phase, row.output) == ("TRAIN", "loss")]
    assert losses[-1].iteration == 81 and losses[-1].images_per_s > 0
    assert losses[-1].value < losses[0].value
    assert [row.seconds for row in history] == sorted(row.seconds for row in history)


def test_the_timeline_has_layers_and_gradients_of_both_ranks(watched):
    processes = timeline.read_all(watched[1] / "timeline")
    assert [process.name.partition(" on ")[0] for process in processes] == ["rank 0", "rank 1"]
    for process in processes:
        names = [event["name"] for event in process.events if event["ph"] == "X"]
        assert names.count("iteration 81") == 1
        # More than 81, because rank 0 of each executor also runs the validation nets.
        assert names.count("conv1 forward") >= 81
        for name in ("conv1 backward", "update"):
            assert names.count(name) == 81, name
        # More than 81, because ranks also wait in the step in which they find that the epoch has
        # ended.
        assert names.count("wait for other ranks' gradients") >= 81
        reduced = [event for event in process.events if "gradients" in event["name"]]
        in_memory = [e for e in reduced if e["args"].get("transport") == "shared memory"]
        assert len(in_memory) >= 81


def test_without_the_flags_there_is_no_page_and_no_file(
    spark, digits, tmp_path, monkeypatch, caplog
):
    monkeypatch.chdir(tmp_path)
    seen = []
    solver = digits.solver("cos", max_iter=3, snapshot_prefix='"lenet"')
    conf = digits.config(spark, solver, clusterSize="2", model="")
    cos = CaffeOnSpark(spark, seen.append)
    history = cos.train(DataSource(spark).getSource(conf, True))
    assert history.columns == [field.split()[0] for field in SCHEMA.split(", ")]
    assert {(row.phase, row.output) for row in history.collect()} == {
        ("TRAIN", "loss"), ("TRAIN", "lr"),
    }  # fmt: skip
    assert "-model is not set and snapshot_prefix is relative" in caplog.text
    conf.logHistograms = 5
    with pytest.raises(FlagError, match="-logHistograms writes to -logDir's file"):
        cos.train(DataSource(spark).getSource(conf, True))
    assert "page" not in {event["event"] for event in seen}
    assert not list(tmp_path.iterdir())
