"""The driver's uses of reports: history, event file, page, status line, callback, MLflow."""

from __future__ import annotations

import json
import math
import posixpath
import re
import sys
import threading
import types
import urllib.request
from pathlib import Path

import pytest
from hearth.native._core import read_events

from hearth.cluster.driver.reports import status_line
from hearth.cluster.driver.reports.history import RunHistory
from hearth.cluster.driver.reports.reports import Report, ReportOptions, Reports, plain_params
from hearth.cluster.driver.reports.status_line import Rate, line_of
from hearth.monitoring import mlflow_run

TEMPLATE = {"worker": [0, 1], "evaluator": [2]}


def event(*reports, left_out=0):
    each = [{"ago": 0.0, "rows": 0, **report} for report in reports]
    return {"event": "report", "reports": each, "left_out": left_out}


def at(step, **values):
    return {"step": step, "values": values}


class Cluster:
    """The driver's side of one cluster."""

    def __init__(self, **options):
        self.stopped = threading.Event()
        self.reports = Reports(ReportOptions(**options), TEMPLATE, self.stopped.set)
        self.reports.open()
        self.reports.begin(TEMPLATE)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.reports.close(error)

    def note(self, node, *reports, **more):
        self.reports.note(node, event(*reports, **more))

    def rows(self):
        return [row[:4] for row in self.reports.history.rows()]


def test_the_history_has_all_ranks_and_other_nodes():
    with Cluster() as cluster:
        cluster.note(0, at(1, loss=0.5, acc=1), at(2, loss="nan"))
        cluster.note(1, at(1, loss=0.75))
        cluster.note(2, at(1, val=2.0))
    *known, last = cluster.rows()
    assert known == [
        (1, None, "val", 2.0),
        (1, 0, "acc", 1.0),
        (1, 0, "loss", 0.5),
        (1, 1, "loss", 0.75),
    ]
    assert last[:3] == (2, 0, "loss") and math.isnan(last[3])


def test_rank_0s_reports_are_in_the_event_file_under_their_names(tmp_path):
    with Cluster(log_dir=str(tmp_path)) as cluster:
        cluster.note(1, at(1, loss=9))
        cluster.note(0, {**at(7, **{"val/loss": 0.5, "loss": "nan"}), "rows": 0})
        cluster.note(0, {**at(8, loss=0.25), "rows": 64, "ago": -2.0})
    (file,) = tmp_path.iterdir()
    points = {(step, tag): value for _, step, tag, value in read_events(file.read_bytes(), "x")}
    assert math.isnan(points.pop((7, "loss")))
    rate = points.pop((8, "run/rows_per_s"))
    assert 0 < rate < 64 * 2 / 1.9  # two ranks with 64 rows each in 2 s
    assert points == {(7, "val/loss"): 0.5, (8, "loss"): 0.25}


def test_after_a_restart_history_and_file_continue_from_the_checkpoint(tmp_path):
    with Cluster(log_dir=str(tmp_path)) as cluster:
        for node in (0, 1):
            cluster.note(node, *(at(step, loss=step) for step in range(1, 9)))
        cluster.reports.note_restart(1, "worker:1 was lost")
        cluster.reports.begin(TEMPLATE)
        cluster.note(0, {"back_to": 5}, at(6, loss=60))
        cluster.note(1, at(4, loss=40))  # it resumes after step 3, from its own checkpoint
    of_rank = lambda rank: [(row[0], row[3]) for row in cluster.rows() if row[1] == rank]  # noqa: E731
    assert of_rank(0) == [*((step, step) for step in range(1, 6)), (6, 60)]
    assert of_rank(1) == [(1, 1), (2, 2), (3, 3), (4, 40)]
    (file,) = tmp_path.iterdir()
    events = read_events(file.read_bytes(), "x")
    assert [(p[1], p[3]) for p in events if p[2] == "loss"] == [
        *((s, s) for s in range(1, 6)),
        (6, 60),
    ]
    assert [p[3] for p in events if p[2] == "run/messages"] == ["worker:1 was lost"]


def test_the_callback_gets_rank_0s_reports_and_ends_the_training(caplog):
    seen, before = [], []

    def on_report(report):
        seen.append(report)
        before.append(cluster.stopped.is_set())
        if report.step == 1:
            raise ValueError("a plot failed")
        return report.step < 3

    with Cluster(on_report=on_report) as cluster:
        cluster.note(1, at(1, loss=9))
        cluster.note(0, at(1, loss=3), at(2, loss=2))
        cluster.note(0, at(3, loss=1))
        assert cluster.stopped.wait(30)
    assert before == [False, False, False]
    assert [(type(r), r.step, dict(r.values)) for r in seen] == [
        (Report, step, {"loss": 4 - step}) for step in (1, 2, 3)
    ]
    assert "on_report failed at step 1" in caplog.text and "a plot failed" in caplog.text


def test_a_callback_that_returns_none_does_not_stop_training():
    with Cluster(on_report=lambda report: None) as cluster:
        cluster.note(0, at(1, loss=3))
    assert not cluster.stopped.is_set()


def test_the_page_shows_the_figures_while_the_training_runs(capsys):
    handled = threading.Event()
    with Cluster(ui=True, title="main_fun", on_report=lambda report: handled.set()) as cluster:
        cluster.note(0, at(7, loss=0.5, **{"val/acc": 0.75}))
        assert handled.wait(30)
        url = capsys.readouterr().err.split("Watch the training at ")[1].split()[0]
        with urllib.request.urlopen(url + "data", timeout=20) as answer:
            data = json.load(answer)
    assert (data["title"], data["state"], data["iteration"]) == ("main_fun", "training", 7)
    assert data["series"] == {"loss": [[7, 0.5]], "val/acc": [[7, 0.75]]}


def test_the_line_is_shown_at_intervals_and_at_the_end(monkeypatch, capsys):
    monkeypatch.setattr(status_line, "_LINES_S", 1e9)
    with Cluster() as cluster:
        for step in range(1, 1001):
            cluster.note(0, at(step, loss=0.5))
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("step")]
    assert lines == ["step 1  loss 0.5", "step 1,000  loss 0.5"]


def test_output_is_shown_with_its_rank_and_dropped_count(capsys):
    with Cluster() as cluster:
        said = {
            "event": "output",
            "label": "[rank 0 h]",
            "lines": ["a", "[bold]b"],
            "left_out": 1200,
        }
        cluster.reports.note(0, said)
    assert capsys.readouterr().err.splitlines() == [
        "[rank 0 h] a",
        "[rank 0 h] [bold]b",
        "[rank 0 h] ... 1,200 lines omitted; see the executor's log",
    ]


def test_dropped_reports_are_counted_in_a_warning(caplog):
    with Cluster() as cluster:
        cluster.note(0, at(1, loss=1), left_out=30)
        cluster.note(1, left_out=4)
    assert "34 reports of metrics were dropped" in caplog.text


def test_an_invalid_report_does_not_affect_others(caplog):
    with Cluster() as cluster:
        cluster.note(0, {"step": 1})
        cluster.note(0, at(2, loss=1))
    assert cluster.rows() == [(2, 0, "loss", 1.0)]
    assert "cannot handle a report" in caplog.text


def test_a_log_dir_that_cannot_be_written_is_an_error_at_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises((OSError, RuntimeError), match="file"):
        Cluster(log_dir=str(tmp_path / "file"))


def test_a_line_has_six_metrics_and_no_line_breaks():
    values = {f"m\n{n}": n / 3 for n in range(8)}
    line = line_of(1234, values, 5678.9)
    assert line.startswith("step 1,234  m 0 0  m 1 0.3333  m 2 0.6667")
    assert line.endswith("(2 more)  5,679 rows/s")


def test_the_rate_is_per_second_and_resets_with_the_program():
    rate = Rate()
    assert not rate.note(0, 0.0) and not rate.note(100, 0.5)
    assert rate.note(300, 2.0) and rate.value == 150
    assert not rate.note(300, 9.0)  # no new rows, so no new rate
    assert not rate.note(10, 10.0) and rate.value is None


def test_a_long_history_is_thinned_and_keeps_the_newest(monkeypatch):
    from hearth.cluster.driver.reports import history

    monkeypatch.setattr(history, "_MOST", 1000)
    kept = RunHistory()
    for step in range(5000):
        kept.add(0, step, {"loss": step}, 0.0)
    kept.add(0, 0, {"once": 1}, 0.0)
    rows = kept.rows()
    assert 400 < len(rows) <= 1001 and rows[-1][0] == 4999 and ("once") in {row[2] for row in rows}


class Refused(Exception):
    error_code = "INVALID_PARAMETER_VALUE"


class FakeMlflow(types.ModuleType):
    """The parts of MLflow that Hearth uses."""

    def __init__(self, active=True, fails=False):
        super().__init__("mlflow")
        self.params, self.metrics, self.fails = {}, [], fails
        self.files = {}
        run = types.SimpleNamespace(info=types.SimpleNamespace(run_id="r1"))
        self.active_run = lambda: run if active else None
        self.entities = types.SimpleNamespace(
            Param=lambda key, value: (key, value), Metric=lambda *values: values
        )

    def MlflowClient(self):
        return self

    def log_batch(self, run_id, metrics=(), params=()):
        assert run_id == "r1" and len(metrics) <= 1000 and len(params) <= 100
        if self.fails:
            raise ConnectionError("no server")
        for key, *_ in (*metrics, *params):  # as MLflow requires of names
            assert re.fullmatch(r"[/\w.\- ]+", key) and posixpath.normpath(key) == key, key
            assert not key.startswith(("/", "..")) and key != "."
        if any(self.params.get(key, value) != value for key, value in params):
            raise Refused("the run has another value")
        self.params.update(params)
        self.metrics += metrics

    def log_artifacts(self, run_id, folder, path):
        assert run_id == "r1"
        if self.fails:
            raise ConnectionError("no server")
        self.files |= {f"{path}/{file.name}": file.read_bytes() for file in Path(folder).iterdir()}


def test_an_active_run_of_mlflow_gets_params_and_metrics_by_step(monkeypatch):
    fake = FakeMlflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    with Cluster(params={"lr": 0.5}) as cluster:
        cluster.note(0, at(3, **{"loss:train": 0.25}))
        cluster.note(1, at(3, loss=9))
        cluster.reports.note_params({"dataset.train.rows": 100})
    assert fake.params == {"workers": "2", "lr": "0.5", "dataset.train.rows": "100"}
    ((key, value, stamp, step),) = fake.metrics
    assert (key, value, step) == ("loss_train", 0.25, 3) and stamp > 1.6e12


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("val//loss", "val/loss"),
        ("a/../../b", "b"),
        ("./x.y", "x.y"),
        (" /top:1/ ", "top_1"),
        ("..", "_"),
        ("", "_"),
        (f"{'n' * 249}/n", "n" * 249),
        ("Verlust/größe", "Verlust/größe"),
    ],
)
def test_names_are_converted_for_mlflow(monkeypatch, name, key):
    fake = FakeMlflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    with Cluster(params={name: 1}) as cluster:
        cluster.note(0, at(3, **{name: 0.25}))
    assert fake.params == {"workers": "2", key: "1"}
    assert [metric[0] for metric in fake.metrics] == [key]


def test_params_that_a_run_lacks_are_logged(monkeypatch, caplog):
    fake = FakeMlflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    for params in ({"lr": 0.5}, {"lr": 1, "depth": 3}):
        with Cluster(params=params):
            pass
    assert fake.params == {"workers": "2", "lr": "0.5", "depth": "3"}
    assert caplog.text.count("the run has another value") == 1


def test_a_model_is_logged_only_to_an_active_run(monkeypatch, caplog):
    fake = FakeMlflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    mlflow_run.log_model(lambda: {"model.keras": b"weights"})
    assert fake.files == {"model/model.keras": b"weights"}
    fake.fails = True
    mlflow_run.log_model(lambda: {"model.keras": b"other"})
    assert "no server" in caplog.text
    monkeypatch.setitem(sys.modules, "mlflow", FakeMlflow(active=False))
    mlflow_run.log_model(lambda: pytest.fail("the files are not needed"))


@pytest.mark.parametrize("fake", [None, FakeMlflow(active=False), types.ModuleType("mlflow")])
def test_without_an_active_run_nothing_is_logged_or_imported(monkeypatch, fake):
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    monkeypatch.setattr(mlflow_run, "MlflowRun", None)
    with Cluster() as cluster:
        cluster.note(0, at(3, loss=0.25))
    assert cluster.rows()


def test_an_unresponsive_mlflow_server_does_not_end_the_training(monkeypatch, caplog):
    fake, answer = FakeMlflow(), threading.Event()
    fake.log_batch = fake.log_artifacts = lambda *_, **__: answer.wait()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    for limit in ("_END_S", "_MODEL_S"):
        monkeypatch.setattr(mlflow_run, limit, 0.05)
    try:
        with Cluster(params={"lr": 0.5}):
            pass
        mlflow_run.log_model(lambda: {"model.keras": b"weights"})
        for what in ("figures", "the model"):
            assert f"MLflow did not accept {what} of run r1 within 0.05 s" in caplog.text
    finally:
        answer.set()


def test_a_server_of_mlflow_that_fails_is_one_warning(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "mlflow", FakeMlflow(fails=True))
    monkeypatch.setattr(mlflow_run, "_PERIOD_S", 0.01)
    with Cluster(params={"lr": 0.5}) as cluster:
        cluster.note(0, at(3, loss=0.25))
    assert caplog.text.count("MLflow rejected") == 1 and "no server" in caplog.text
    assert cluster.rows()


def test_plain_arguments_of_a_program_are_params():
    args = types.SimpleNamespace(lr=0.1, name="a", deep=True, net=object())
    assert plain_params(args) == {"lr": 0.1, "name": "a", "deep": True}
    assert plain_params({"lr": 1, "x": None}) == {"lr": 1}
    assert plain_params(["--lr", "1"]) == plain_params(None) == {}


def test_unknown_keyword_arguments_of_run_are_refused():
    def main_fun(args, ctx):
        pass

    with pytest.raises(TypeError, match=r"run\(\) got an unexpected keyword argument 'log'"):
        ReportOptions.of(main_fun, None, {"log": "all"})
    with pytest.raises(ValueError, match=r"logs is 'rank1': it must be one of rank0, all, none"):
        ReportOptions.of(main_fun, None, {"logs": "rank1"})
    options = ReportOptions.of(main_fun, {"lr": 1}, {"ui": True})
    assert options.ui and options.title.endswith("main_fun") and options.params == {"lr": 1}


def test_rows_of_loaders_are_counted_when_delivered():
    from dataset_ranks import loaders, partitions_of

    from hearth.data.delivered import delivered_rows

    (loader,) = loaders(partitions_of(10), 1, batch_size=4)
    before, counts = delivered_rows(), []
    for _ in loader:
        counts.append(delivered_rows() - before)
    assert counts == [4, 8, 10]  # prefetched rows are not counted
