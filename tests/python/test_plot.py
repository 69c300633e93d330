"""`hearth plot` and `hearth parse_log` on logs in Caffe's format."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from program import run, write_solver

from hearth.tools.parse_log import read_log
from hearth.tools.plot import curves, plot_logs

LOG = """
I1231 23:59:59.000000 1 net.cc:5] Creating layer ip
I1231 23:59:59.000000 1 solver.cc:1] Solving lenet
I1231 23:59:59.500000 1 solver.cc:1] Iteration 0, Testing net (#0)
I1231 23:59:59.600000 1 solver.cc:1]     Test net output #0: accuracy = 0.1
I1231 23:59:59.700000 1 solver.cc:1]     Test net output #1: loss = 2.3 (* 1 = 2.3 loss)
I1231 23:59:59.750000 1 solver.cc:1] Iteration 0, Testing net (#1)
I1231 23:59:59.760000 1 solver.cc:1]     Test net output #0: accuracy = 0.2
I1231 23:59:59.800000 1 solver.cc:1] Iteration 0 (0 iter/s, 0.1s/100 iters), loss = 2.31
I1231 23:59:59.800000 1 solver.cc:1]     Train net output #0: loss = 2.5 (* 1 = 2.5 loss)
I1231 23:59:59.800000 1 solver.cc:1] Iteration 0, lr = 0.01
I0101 00:00:02.000000 1 solver.cc:1] Iteration 100 (50 iter/s, 2s/100 iters), loss = 1e-01
I0101 00:00:02.000000 1 solver.cc:1]     Train net output #0: loss = nan (* 1 = nan loss)
I0101 00:00:02.000000 1 solver.cc:1] Iteration 100, lr = 0.009
I0101 00:00:03.000000 1 solver.cc:1] Iteration 200, loss = 0.05
I0101 00:00:03.500000 1 solver.cc:1] Iteration 200, Testing net (#0)
I0101 00:00:04.000000 1 solver.cc:1]     Test net output #0: accuracy = 0.98
I0101 00:00:04.000000 1 solver.cc:1]     Test net output #1: loss = 0.06 (* 1 = 0.06 loss)
"""


def table(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_every_line_is_drawn_in_its_row() -> None:
    log = read_log(LOG.splitlines())
    assert [(row.iteration, row.loss) for row in log.train] == [(0, 2.31), (100, 0.1), (200, 0.05)]
    assert [row.learning_rate for row in log.train] == [0.01, 0.009, None]
    assert log.train[0].outputs == {"loss": 2.5}
    assert math.isnan(log.train[1].outputs["loss"])
    assert [row.outputs["accuracy"] for row in log.test[0]] == [0.1, 0.98]
    assert [row.outputs for row in log.test[1]] == [{"accuracy": 0.2}]
    assert log.loss_names == {"loss"}


def test_time_counts_from_solving_across_new_year() -> None:
    log = read_log(LOG.splitlines())
    assert [row.seconds for row in log.train] == [0.8, 3.0, 4.0]


def test_csv_files_have_the_columns_of_caffes_tool(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG)
    run("parse_log", "a.log", ".", cwd=tmp_path)
    assert table(tmp_path / "a.log.train") == [
        ["NumIters", "Seconds", "LearningRate", "loss"],
        ["0", "0.8", "0.01", "2.5"],
        ["100", "3.0", "0.009", "nan"],
    ]
    assert table(tmp_path / "a.log.test") == [
        ["NumIters", "Seconds", "LearningRate", "accuracy", "loss"],
        ["0", "0.5", "0.01", "0.1", "2.3"],
        ["200", "4.5", "0.009", "0.98", "0.06"],
    ]
    assert len(table(tmp_path / "a.log.test_1")) == 2


def test_losses_are_separated_from_other_outputs() -> None:
    losses, others = curves(read_log(LOG.splitlines()), "", "iterations")
    assert [label for label, *_ in losses] == ["train loss", "test #0 loss"]
    assert [label for label, *_ in others] == ["test #0 accuracy", "test #1 accuracy"]
    assert losses[0][1:3] == ([0, 100, 200], [2.31, 0.1, 0.05])
    assert others[0][1:] == ([0, 200], [0.1, 0.98], True)


def test_the_figure_has_a_panel_for_each_kind() -> None:
    figure = plot_logs({"a": read_log(LOG.splitlines())}, x="seconds", log_scale=True)
    above, below = figure.axes
    assert above.get_yscale() == "log"
    assert below.get_ylabel() == "accuracy"
    assert below.get_xlabel() == "seconds"
    assert [len(line.get_xdata()) for line in above.lines] == [3, 2]
    only_loss = plot_logs({"a": read_log(["Iteration 5, loss = 1"])})
    assert len(only_loss.axes) == 1


def test_plots_the_log_of_a_training(tmp_path: Path) -> None:
    solver = write_solver(tmp_path, "display: 5 test_iter: 1 test_interval: 10")
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(run("train", "-solver", solver, cwd=tmp_path))
    run("plot", "a.log", "b.log", "-o", "both.svg", cwd=tmp_path)
    run("plot", "a.log", "-o", "a.png", "--log-scale", cwd=tmp_path)
    assert (tmp_path / "both.svg").read_text().count("<svg") == 1
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_an_invalid_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("nothing\n")
    said = run("plot", "empty", "-o", "x.svg", cwd=tmp_path, status=1)
    assert "empty has no line such as 'Iteration 100, loss = 0.5'" in said
    assert "none.log" in run("plot", "none.log", "-o", "x.svg", cwd=tmp_path, status=1)
