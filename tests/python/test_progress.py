"""Progress is a status line on a terminal, and Caffe's log lines in a log."""

import io
import os

from hearth.spark.progress import Progress, format_duration, format_progress

EVENT = {
    "event": "progress", "iteration": 120, "max_iter": 500, "loss": 0.25, "lr": 0.0099,
    "images_per_s": 5120.4, "effective_batch": 64, "eta_s": 4.6,
}  # fmt: skip


def test_a_line_has_all_figures():
    assert format_progress(EVENT) == (
        "iteration 120/500  loss 0.2500  lr 0.0099  5,120 images/s  batch 64  ETA 0:05"
    )


def test_durations_are_formatted():
    assert [format_duration(s) for s in (0.2, 59.6, 3600)] == ["0:00", "1:00", "1:00:00"]


def test_a_log_gets_the_log_lines_only():
    stream = io.StringIO()
    with Progress(stream) as progress:
        progress.show(EVENT)
        progress.show({"event": "log", "level": "I", "text": "I1121 09:05 1 solver.cc:2] hi"})
    assert stream.getvalue() == "I1121 09:05 1 solver.cc:2] hi\n"


def test_a_line_already_on_this_terminal_is_not_repeated(capfd):
    line = {"event": "log", "level": "W", "text": "W1121 hi", "on_stderr": True}
    with os.fdopen(os.dup(2), "w") as other, open(2, "w", closefd=False) as stderr:
        for stream in (stderr, other, io.StringIO()):
            with Progress(stream) as progress:
                progress.show(line)
                progress.show({**line, "on_stderr": False, "text": "of the driver"})
        assert "W1121 hi" in stream.getvalue()
    assert capfd.readouterr().err.splitlines() == ["of the driver", "W1121 hi", "of the driver"]


RESTART = {
    "event": "restart", "generation": 2, "max_restarts": 3, "reason": "rank 1 on host h went away",
}  # fmt: skip


def test_a_restart_is_shown_with_its_reason():
    stream = io.StringIO()
    with Progress(stream) as progress:
        progress.show(RESTART)
    assert stream.getvalue() == (
        "rank 1 on host h went away; restarting from the last snapshot (2 of 3)\n"
    )


def test_the_wait_for_executors_is_shown():
    stream = io.StringIO()
    with Progress(stream) as progress:
        progress.show({"event": "waiting", "text": "waiting for executors: 2 of 3 slots"})
    assert stream.getvalue() == "waiting for executors: 2 of 3 slots\n"


def test_the_link_of_a_page_is_shown():
    stream = io.StringIO()
    with Progress(stream) as progress:
        progress.show({"event": "page", "url": "http://127.0.0.1:1/secret/"})
    assert stream.getvalue() == "Watch the training at http://127.0.0.1:1/secret/\n"


def test_a_terminal_gets_the_line():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    with Progress(stream) as progress:
        progress.show(EVENT)
        progress.show({"event": "log", "level": "I", "text": "hidden"})
        progress.show({"event": "log", "level": "W", "text": "the loss is nan"})
        progress.show({"event": "waiting", "text": "waiting for executors: 2 of 3 slots"})
    assert "waiting for executors: 2 of 3 slots" in stream.getvalue()
    assert "hidden" not in stream.getvalue()
    assert "the loss is nan" in stream.getvalue()
    assert "iteration 120/500" in stream.getvalue()
    assert "hidden" not in stream.getvalue()
