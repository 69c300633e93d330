"""A training that is watched: its page while it runs, its event file and report afterwards."""

import json
import urllib.request
from pathlib import Path

import pytest

from hearth.caffeonspark import CaffeOnSpark, DataSource
from hearth.tools import report


class Watcher:
    """A listener that opens the page at each validation."""

    def __init__(self):
        self.url = None
        self.looks = []

    def __call__(self, event):
        if event["event"] == "page":
            self.url = event["url"]
        if event["event"] == "validation":
            with urllib.request.urlopen(self.url + "data", timeout=20) as answer:
                self.looks.append(json.load(answer))


@pytest.fixture(scope="module")
def watched(spark, digits, tmp_path_factory):
    folder = tmp_path_factory.mktemp("seen")
    solver = digits.solver("memory", max_iter=81, test_interval=40)
    conf = digits.config(spark, solver, clusterSize="2", ui=True, logDir=f"file:{folder}")
    seen, sources = Watcher(), DataSource(spark)
    train, test = sources.getSource(conf, True), sources.getSource(conf, False)
    result = CaffeOnSpark(spark, seen).trainWithValidation(train, test)
    return seen, Path(folder), result.collect()


def test_the_page_shows_a_running_training(watched):
    seen, _, rows = watched
    first, last = seen.looks[0], seen.looks[-1]
    assert first["state"] == "training" and first["max_iter"] == 81
    assert [step for step, _ in last["series"]["accuracy/test"]] == [40, 80]
    shown = [value for _, value in last["series"]["accuracy/test"]]
    assert shown == pytest.approx([row.accuracy[0] for row in rows])
    assert last["series"]["loss/train"] and last["series"]["run/images_per_s"]


def test_the_page_is_gone_afterwards(watched):
    with pytest.raises(OSError):
        urllib.request.urlopen(watched[0].url, timeout=5)


def test_the_event_file_has_all_ranks_and_outputs(watched):
    _, folder, rows = watched
    series = report.read_run(folder).snapshot()["series"]
    for rank in (0, 1):
        shares = [
            series[f"rank{rank}/{share}"][-1][1] for share in ("compute", "rows_wait", "ranks_wait")
        ]
        assert sum(shares) == pytest.approx(1, abs=0.01)
    assert [step for step, _ in series["loss/test"]] == [40, 80]
    assert series["accuracy/test"][-1][1] == pytest.approx(rows[-1].accuracy[0])
    assert series["loss/train"][-1][0] == 81


def test_without_the_flags_there_is_neither(spark, digits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = []
    conf = digits.config(spark, digits.solver("cos", max_iter=3), clusterSize="2")
    cos = CaffeOnSpark(spark, told.append)
    cos.train(DataSource(spark).getSource(conf, True))
    assert "page" not in {event["event"] for event in told}
    assert not list(tmp_path.iterdir())
