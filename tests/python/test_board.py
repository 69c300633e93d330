"""A training's page, which opens only with its link, and its report."""

from __future__ import annotations

import http.client
import json
import math
import re
import socket
import sys
import threading
import time
from urllib.parse import urlsplit

import pytest
from hearth.native._core import RunRecord, read_events
from program import run, write_solver

from hearth.monitoring.history import History
from hearth.monitoring.live_page import LivePage
from hearth.monitoring.watch import watched
from hearth.tools import report

PROGRESS = {
    "event": "progress", "iteration": 40, "max_iter": 500, "loss": 0.25, "lr": 0.01,
    "invalid_rows": 3, "images_per_s": 5120.4, "effective_batch": 64, "eta_s": 4.6,
    "outputs": {"loss": [0.75]},
}  # fmt: skip
VALIDATION = {"event": "validation", "iteration": 40, "outputs": {"accuracy": [0.5]}}
DONE = {"event": "done", "validations": [{"iteration": 40, "outputs": {"accuracy": [0.5]}}]}


def get(url: str, host: str | None = None, method: str = "GET") -> tuple[int, dict[str, str], str]:
    """Status, headers and text of the response."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    headers = {"Host": host} if host else {}
    connection.request(method, parts.path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, dict(answer.headers), text


class Seen:
    """A training's listener that records events."""

    def __init__(self):
        self.events = []

    def __call__(self, event):
        self.events.append(event)

    @property
    def url(self):
        return next(event["url"] for event in self.events if event["event"] == "page")


def test_the_page_has_the_figures_while_the_training_runs():
    seen = Seen()
    with watched(seen, "solver.prototxt", "", ui=True) as on_event:
        on_event(PROGRESS)
        on_event(VALIDATION)
        on_event({"event": "log", "level": "W", "text": "</script>"})
        status, headers, page = get(seen.url)
        assert status == 200 and "<title>Hearth</title>" in page
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"
        status, _, data = get(seen.url + "data")
        data = json.loads(data)
        assert data["title"] == "solver.prototxt" and data["state"] == "training"
        assert (data["iteration"], data["max_iter"]) == (40, 500)
        assert data["series"]["loss/train"] == [[40, 0.75]]
        assert data["series"]["accuracy/test"] == [[40, 0.5]]
        assert data["series"]["run/invalid_rows"] == [[40, 3]]
        assert [text for _, _, text in data["messages"]] == ["</script>"]
        on_event.end(DONE)
    assert [event["event"] for event in seen.events[1:]] == ["progress", "validation", "log"]


def test_the_page_needs_nothing_from_other_hosts():
    with LivePage(dict) as page:
        text = get(page.url)[2]
    assert not re.search(r"(src|href)\s*=\s*(?![\"']?data:)|@import|url\(", text)
    # The only URL in it is an XML namespace.
    assert set(re.findall(r"https?://[^\"' )]+", text)) == {"http://www.w3.org/2000/svg"}


def test_a_caffe_trainings_figures_are_in_the_active_run_of_mlflow(monkeypatch):
    from test_reports_driver import FakeMlflow

    fake = FakeMlflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    with watched(lambda event: None, "solver.prototxt", "", ui=False) as on_event:
        on_event.params({"base_lr": 0.01})
        on_event(PROGRESS)
        on_event(VALIDATION)
    assert fake.params == {"base_lr": "0.01"}
    found = {key: (value, step) for key, value, _, step in fake.metrics}
    assert found["loss/train"] == (0.75, 40) and found["accuracy/test"] == (0.5, 40)


def test_mlflow_gets_the_files_of_a_caffe_training(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from hearth.caffeonspark.described import described
    from hearth.data import parquet
    from hearth.sources.rank_rows import RankRows

    pq.write_table(pa.table({"x": range(9)}), tmp_path / "rows.parquet")
    shown = described("train", "file:/rows", RankRows(parquet(str(tmp_path))).pin())
    assert shown["dataset.train.uri"] == "file:/rows" and shown["dataset.train.rows"] == 9
    pq.write_table(pa.table({"x": range(10)}), tmp_path / "rows.parquet")
    other = described("train", "", RankRows(parquet(str(tmp_path))).pin())
    assert len(other) == 2 and other["dataset.train.version"] != shown["dataset.train.version"]


def test_the_floats_of_a_solver_are_those_of_its_file():
    import numpy as np

    from hearth.caffeonspark.described import described_solver

    texts = ["0.01", "0.9", "5e-4", "0.12345679", "1e-38", "3", "inf", "nan", "3.4028235e38"]
    floats = {text: float(np.float32(text)) for text in texts}
    found = described_solver({**floats, "max_iter": 3, "stepvalue": [4], "lr_policy": "inv"})
    assert [str(found[text]) for text in texts] == [str(float(text)) for text in texts]
    assert (found["max_iter"], found["stepvalue"], found["lr_policy"]) == (3, [4], "inv")


def test_a_seal_has_the_rows_and_the_hash_of_an_epoch_that_has_ended(tmp_path):
    from hearth.caffeonspark.described import described_by_seal

    seal = {"epoch": 1, "rows": [{"count": 3, "hash": "a"}, {"count": 4, "hash": "b"}]}
    state = f"file:{tmp_path}/net_iter_9.solverstate"
    written = tmp_path / "net_iter_9.hearth.json"
    written.write_text(json.dumps(seal))
    found = described_by_seal("train", state)
    assert found["dataset.train.rows"] == 7 and len(found["dataset.train.hash"]) == 16
    assert described_by_seal("train", f"{tmp_path}/net_iter_9.solverstate.h5") == found
    seal["rows"].reverse()
    written.write_text(json.dumps(seal))
    assert described_by_seal("train", state)["dataset.train.hash"] != found["dataset.train.hash"]
    # Nothing is found if no epoch has ended, if the seal counts no rows (streamed files), if the
    # file is damaged, and without a snapshot or file.
    for text in (json.dumps({**seal, "epoch": 0}), '{"epoch": 1, "rows": [{"count": 0}]}', "{"):
        written.write_text(text)
        assert described_by_seal("train", state) == {}
    assert described_by_seal("train", "") == described_by_seal("train", f"{state}.x") == {}


def test_the_page_requires_the_secret_of_its_link():
    with LivePage(lambda: {"figure": 1}) as page:
        parts = urlsplit(page.url)
        root = f"http://{parts.netloc}"
        token = parts.path.strip("/")
        assert len(token) >= 40
        wrong = token[:-1] + ("a" if token[-1] != "a" else "b")
        for path in (
            "/", "/data", "//data", f"/{wrong}/", f"/{wrong}/data", f"/{token[:-1]}/data",
            f"/{token}", f"/{token}/page.html", f"/{token}/../", f"/{token}/data/", f"/x/{token}/",
            "/etc/passwd", f"/{token}//etc/passwd", "/%00/", "/%C3%A9/",
        ):  # fmt: skip
            status, _, text = get(root + path)
            assert (status, text) == (404, "not found\n"), path
        for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS"):
            assert get(page.url + "data", method=method)[0] in (404, 405, 501)
        assert get(page.url + "data")[2] == '{"figure": 1}'


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example:1"])
def test_requests_for_another_host_name_are_refused(host):
    with LivePage(dict) as page:
        assert get(page.url, host=host)[0] == 404
        assert get(page.url, host="localhost:8000")[0] == 200  # as through a tunnel


def test_the_page_is_on_loopback_only_and_ends_with_the_training():
    with LivePage(dict) as page:
        parts = urlsplit(page.url)
        assert parts.hostname == "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((parts.hostname, parts.port))
    assert not [thread for thread in threading.enumerate() if thread.name == "hearth-page"]


def test_a_silent_client_delays_neither_others_nor_the_end():
    with LivePage(dict) as page:
        parts = urlsplit(page.url)
        silent = socket.create_connection((parts.hostname, parts.port))
        began = time.monotonic()
        assert get(page.url)[0] == 200
    assert time.monotonic() - began < 9  # not delayed by the silent client's 10 s
    silent.close()


def test_an_open_page_gets_the_last_figures():
    figures = {"state": "training"}
    with LivePage(lambda: figures) as page:
        get(page.url + "data")
        figures["state"] = "done"
        last = []
        looking = threading.Timer(0.3, lambda: last.append(get(page.url + "data")[2]))
        looking.start()
    looking.join()
    assert last == ['{"state": "done"}']


def test_a_failed_training_is_reported_and_leaves_no_server():
    seen = Seen()
    with pytest.raises(RuntimeError), watched(seen, "s", "", ui=True):
        raise RuntimeError("rank 1 failed")
    with pytest.raises(ConnectionRefusedError):
        get(seen.url)


def test_curves_are_rewound_by_a_restart_and_thinned():
    history = History("x")
    history.add(None, [(1.0, step, "loss/train", 1 / (step + 1)) for step in range(5000)])
    points = history.snapshot()["series"]["loss/train"]
    assert 250 <= len(points) <= 500 and points[-1][0] == 4999
    history.add(100, [(2.0, 100, "run/restarts", 1.0), (2.0, 100, "run/messages", "lost")])
    history.add(None, [(3.0, 101, "loss/train", math.nan)])
    snapshot = history.snapshot()
    assert snapshot["series"]["loss/train"][-1] == [101, None]
    assert max(step for step, _ in snapshot["series"]["loss/train"]) == 101
    assert snapshot["messages"] == [(2.0, 100, "lost")]


def test_a_restart_is_counted_in_the_report_though_the_curves_were_rewound(tmp_path):
    with watched(lambda event: None, "s", str(tmp_path), ui=False) as on_event:
        on_event(PROGRESS)
        on_event({"event": "restart", "generation": 1, "max_restarts": 3, "reason": "lost"})
        on_event({"event": "ready", "iteration": 30})
        on_event({**PROGRESS, "iteration": 31})
    series = report.read_run(tmp_path).snapshot()["series"]
    assert series["run/restarts"] == [[30, 1]]
    assert series["run/invalid_rows"] == [[31, 3]]
    assert [step for step, _ in series["loss/train"]] == [31]


def report_data(path):
    text = path.read_text()
    found = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found[1])


def test_without_events_only_validations_are_recorded(tmp_path):
    with watched(lambda event: None, "s", str(tmp_path), ui=False) as on_event:
        on_event.end(DONE)
    assert report.main([str(tmp_path)]) == 0
    assert report_data(tmp_path / "report.html")["series"] == {"accuracy/test": [[40, 0.5]]}


def test_a_report_lists_the_datasets(tmp_path):
    with watched(lambda event: None, "s", str(tmp_path), ui=False) as on_event:
        on_event.params({"lr": 1, "dataset.train.version": "Delta version 3, 9 rows, ab"})
    ((_, _, text),) = report.read_run(tmp_path).snapshot()["messages"]
    assert text == "dataset.train.version: Delta version 3, 9 rows, ab"


def test_a_report_has_the_run_in_it(tmp_path, capsys):
    with watched(lambda event: None, "s", str(tmp_path / "run"), ui=False) as on_event:
        on_event(PROGRESS)
        on_event({"event": "log", "level": "W", "text": "</script><b>é"})
    assert report.main([str(tmp_path / "run"), "-o", str(tmp_path / "out.html")]) == 0
    assert capsys.readouterr().out == f"Wrote {tmp_path / 'out.html'}\n"
    data = report_data(tmp_path / "out.html")
    assert data["title"] == "run" and data["iteration"] == 40
    assert data["series"]["loss/train"] == [[40, 0.75]]
    assert data["messages"][0][2] == "</script><b>é"


def test_a_later_file_continues_the_earlier_one(tmp_path):
    for begin, value in ((1, 0.5), (30, 0.25)):
        record = RunRecord(str(tmp_path), time.time())
        for step in range(begin, begin + 40):
            record.take({**PROGRESS, "iteration": step, "outputs": {"loss": [value]}}, time.time())
        record.finish()
    points = report.read_run(tmp_path).snapshot()["series"]["loss/train"]
    assert [step for step, _ in points] == list(range(1, 70))
    assert [value for _, value in points] == [0.5] * 29 + [0.25] * 40


@pytest.mark.parametrize(
    ("content", "said"), [(None, "has no event files"), (b"no event file", "damaged")]
)
def test_a_file_that_is_not_a_run_is_reported_in_one_line(tmp_path, capsys, content, said):
    if content:
        (tmp_path / "events.out.tfevents.1").write_bytes(content)
    assert report.main([str(tmp_path)]) == 1
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1 and said in shown and str(tmp_path) in shown


def test_hearth_train_writes_an_event_file_next_to_its_log(tmp_path):
    (tmp_path / "logs").mkdir()
    tests = "test_iter: 2 test_interval: 10 display: 0"
    solver = write_solver(tmp_path, tests)
    run("train", "-solver", solver, "-log_dir", "logs", cwd=tmp_path)
    (file,) = (tmp_path / "logs").glob("events.out.tfevents.*")
    points = read_events(file.read_bytes(), str(file))
    steps = {}
    for _, step, tag, _ in points:
        steps.setdefault(tag, []).append(step)
    assert steps["loss/test"] == [0, 10, 20]
    assert steps["loss/train"][0] == 1 and steps["loss/train"][-1] == 20
    assert {"run/images_per_s", "run/learning_rate", "rank0/compute"} <= steps.keys()
    assert "Wrote logs/report.html" in run("report", "logs", cwd=tmp_path)
    assert report_data(tmp_path / "logs" / "report.html")["title"] == "logs"


def test_hearth_train_without_a_folder_writes_none(tmp_path):
    run("train", "-solver", write_solver(tmp_path), cwd=tmp_path)
    assert not list(tmp_path.rglob("*tfevents*"))
