"""CI's sanitizers: which modules they run, and which ones their budget leaves out."""

import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import sanitize_changed  # noqa: E402
from sanitize_changed import FOREIGN_BYTES, TOO_LARGE, choose  # noqa: E402

MODULES = [path.parent.name for path in (ROOT / "hearth").glob("*/CMakeLists.txt")]
LINES = {
    "hearth/ring/ring.cc": 12,
    "hearth/ring/ring_test.cc": 2,
    "hearth/caffe/net/net.cc": 300,
    "hearth/gone/file.cc": 5,
    "hearth/tensorboard/event.h": 7,
    "hearth/file.cc": 3,
    "tests/fuzz/driver.cc": 18,
}


def test_changed_lines_are_counted_by_module():
    lines = sanitize_changed.changed_modules(LINES)
    assert lines == {"ring": 14, "caffe": 300, "gone": 5, "tensorboard": 7}


def test_the_most_changed_modules_are_run_and_parsers_of_foreign_bytes_fill_up():
    chosen, left_out = choose(sanitize_changed.changed_modules(LINES), MODULES)
    assert chosen == ["ring", "tensorboard", "batch", "rendezvous"]  # deleted modules are left out
    assert left_out == ["caffe"]


def test_many_changes_leave_the_smallest_out():
    lines = Counter(trainer=9, dataset=8, collective=7, storage=6, image=5, base=4)
    chosen, left_out = choose(lines, MODULES)
    assert chosen == ["dataset", "collective", "storage", "image"]
    assert left_out == ["trainer", "base"]


def test_without_changes_parsers_of_foreign_bytes_are_run():
    assert choose(Counter(), MODULES) == (list(FOREIGN_BYTES), [])


def test_the_named_modules_exist():
    assert {*TOO_LARGE, *FOREIGN_BYTES} <= set(MODULES)


def shell(name):
    return ["sh", "-c", {"good": "exit 0", "bad": "exit 2", "endless": "sleep 1000 & wait"}[name]]


def test_a_finding_fails_and_the_rest_is_run_nevertheless():
    found = sanitize_changed.sanitize(["bad", "good"], 60, shell)
    assert found == (["good"], ["bad"], [])


@pytest.mark.parametrize("budget_s", [0.2, 0])
def test_what_exceeds_the_budget_is_reported_as_not_run(budget_s):
    found = sanitize_changed.sanitize(["endless", "good"], budget_s, shell)
    assert found == ([], [], ["endless", "good"])


@pytest.mark.parametrize(
    ("passed", "failed", "status", "error"),
    [
        (["batch"], [], 0, ""),
        (["batch"], ["ring"], 1, "sanitizers: FAILED: ring (reports above)\n"),
        ([], [], 0, ""),
    ],
)
def test_a_finding_is_the_exit_status_and_each_module_is_named(
    monkeypatch, capfd, passed, failed, status, error
):
    monkeypatch.setattr(sys, "argv", ["sanitize_changed.py", "--budget", "60"])
    monkeypatch.setattr(sanitize_changed, "sanitize", lambda *_: (passed, failed, ["tensorboard"]))
    assert sanitize_changed.main() == status
    out, err = capfd.readouterr()
    assert f"sanitizers: passed: {', '.join(passed) or 'none'}\n" in out
    assert "sanitizers: left out by the budget of 60 s: tensorboard" in out
    assert err == error
