"""`hearth train`: flags, log lines, files and signals of Caffe's program."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from program import NET, messages, run, signalled, write_solver


def test_trains_with_one_dash_or_two_and_with_equals(tmp_path: Path) -> None:
    solver = write_solver(tmp_path)
    for flags in (["-solver", solver], [f"--solver={solver}"], [f"-solver={solver}"]):
        assert "Optimization Done." in messages(run("train", *flags, cwd=tmp_path))
    assert (tmp_path / "snap_iter_20.caffemodel").exists()
    assert (tmp_path / "snap_iter_20.solverstate").exists()


def test_the_log_has_caffes_lines_in_caffes_order(tmp_path: Path) -> None:
    solver = write_solver(
        tmp_path, "display: 10 test_iter: 2 test_interval: 20 test_compute_loss: true"
    )
    got = messages(run("train", "-solver", solver, cwd=tmp_path))
    number = r"[-+.\de]+"
    loss = rf"loss = {number} \(\* 1 = {number} loss\)"
    expected = [
        "Solving dummy",
        "Learning Rate Policy: fixed",
        r"Iteration 0, Testing net \(#0\)",
        f"Test loss: {number}",
        f"    Test net output #0: {loss}",
        rf"Iteration 0 \({number} iter/s, {number}s/10 iters\), loss = {number}",
        f"    Train net output #0: {loss}",
        "Iteration 0, lr = 0.02",
        rf"Iteration 10 \({number} iter/s, {number}s/10 iters\), loss = {number}",
        f"    Train net output #0: {loss}",
        "Iteration 10, lr = 0.02",
        "Snapshotting to binary proto file snap_iter_20.caffemodel",
        "Snapshotting solver state to binary proto file snap_iter_20.solverstate",
        f"Iteration 20, loss = {number}",
        r"Iteration 20, Testing net \(#0\)",
        f"Test loss: {number}",
        f"    Test net output #0: {loss}",
        "Optimization Done.",
    ]
    rest = iter(got)
    for pattern in expected:  # consumes lines, so patterns must match in order
        assert any(re.fullmatch(pattern, line) for line in rest), (pattern, got)


def test_every_test_net_runs_in_its_state(tmp_path: Path) -> None:
    staged = (
        NET
        + """
layer { name: "extra" type: "Power" bottom: "y" top: "only_with_stage"
        include { phase: TEST stage: "more" } }
"""
    )
    solver = write_solver(
        tmp_path,
        'train_net: "net.prototxt" test_net: "net.prototxt" test_net: "net.prototxt" '
        'test_state { } test_state { stage: "more" } test_iter: 1 test_iter: 3 test_interval: 50 '
        "max_iter: 1",
        staged,
    )
    got = messages(run("train", "-solver", solver, cwd=tmp_path))
    first = got.index("Iteration 0, Testing net (#0)")
    second = got.index("Iteration 0, Testing net (#1)")
    assert not any("only_with_stage" in line for line in got[first:second])
    assert any("only_with_stage" in line for line in got[second:])


def test_level_and_stage_choose_the_layers(tmp_path: Path) -> None:
    staged = (
        NET
        + """
layer { name: "s" type: "Power" bottom: "y" top: "staged" include { stage: "b" } }
layer { name: "l" type: "Power" bottom: "y" top: "leveled" include { min_level: 2 } }
"""
    )
    solver = write_solver(tmp_path, "display: 1 max_iter: 1", staged)
    assert "staged" not in run("train", "-solver", solver, cwd=tmp_path)
    log = run("train", "-solver", solver, "-stage", "a,b", "-level", "2", cwd=tmp_path)
    assert " staged = " in log
    assert " leveled = " in log


def test_resumes_from_a_snapshot_and_starts_from_weights(tmp_path: Path) -> None:
    solver = write_solver(tmp_path, "max_iter: 20 display: 1")
    first_run = messages(run("train", "-solver", solver, cwd=tmp_path))
    write_solver(tmp_path, "max_iter: 30 display: 1")
    flags = ["-snapshot", "snap_iter_20.solverstate"]
    log = messages(run("train", "-solver", solver, *flags, cwd=tmp_path))
    assert not any(line.startswith("Iteration 19 ") for line in log)
    assert any(line.startswith("Iteration 20 ") for line in log)
    # With only -weights, training starts at iteration 0 with the earlier run's weights.
    warm = messages(
        run("train", "-solver", solver, "-weights", "snap_iter_20.caffemodel", cwd=tmp_path)
    )

    def loss(lines: list[str], iteration: int) -> float:
        at = next(line for line in lines if line.startswith(f"Iteration {iteration} "))
        return float(at.rsplit(" ", 1)[1])

    assert loss(warm, 0) == pytest.approx(loss(log, 20), rel=1e-4)
    assert loss(warm, 0) < loss(first_run, 0)


def test_several_weights_files_are_read_in_turn(tmp_path: Path) -> None:
    def with_layer(name: str, value: float) -> str:
        filler = f'{{ type: "constant" value: {value} }}'
        text = NET.replace('"ip"', f'"{name}"')
        return text.replace('{ type: "xavier" }', f"{filler} bias_filler {filler}")

    for name, value in (("a", 0.25), ("b", 0.5)):
        more = f'base_lr: 0 snapshot_prefix: "{name}" max_iter: 1'
        run("train", "-solver", write_solver(tmp_path, more, with_layer(name, value)), cwd=tmp_path)
    both = (
        with_layer("a", 0)
        + """
layer { name: "b" type: "InnerProduct" bottom: "x" top: "z"
  inner_product_param { num_output: 2 } }
"""
    )
    (tmp_path / "both.prototxt").write_text(both)
    files = "a_iter_1.caffemodel,b_iter_1.caffemodel"
    flags = ["-model", "both.prototxt", "-weights", files, "-iterations", "1"]
    log = messages(run("test", *flags, cwd=tmp_path))
    assert "Batch 0, z = 2" in log  # 3 * 0.5 + 0.5
    assert "Batch 0, loss = 1" in log  # y = 3 * 0.25 + 0.25 = 1 and t = 2, in two elements


def test_sigint_stops_after_a_snapshot(tmp_path: Path) -> None:
    status, log = signalled(tmp_path, {"Iteration 10 ": signal.SIGINT})
    assert status == 0
    assert log[-1] == "Optimization stopped early."
    state = next(line for line in log if "Snapshotting solver state" in line).split()[-1]
    assert (tmp_path / state).exists()
    assert len(list(tmp_path.glob("*.solverstate"))) == 1


def test_sighup_writes_a_snapshot_and_trains_on(tmp_path: Path) -> None:
    # If two signals arrive between two iterations, only the stop has an effect.
    signals = {"Iteration 10 ": signal.SIGHUP, "Snapshotting solver state": signal.SIGINT}
    status, log = signalled(tmp_path, signals)
    assert status == 0
    assert log[-1] == "Optimization stopped early."
    assert len(list(tmp_path.glob("*.solverstate"))) == 2


def test_a_signals_effect_can_be_chosen(tmp_path: Path) -> None:
    status, _ = signalled(tmp_path, {"Iteration 10 ": signal.SIGHUP}, "-sighup_effect", "stop")
    assert status == 0
    assert len(list(tmp_path.glob("*.solverstate"))) == 1
    log = run("train", "-solver", "solver.prototxt", "-sigint_effect=jump", cwd=tmp_path, status=1)
    assert "-sigint_effect must be stop, snapshot or none" in log


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train"], "-solver is missing"),
        (["train", "-slover", "x"], "--slover"),
        (["train", "-solver", "none.prototxt"], "none.prototxt"),
        (["train", "-solver", "s", "-snapshot", "a", "-weights", "b"], "excludes"),
        (["test", "-weights", "w"], "-model is missing"),
        (["test", "-model", "m"], "-weights is missing"),
        (["test", "-model", "m", "-weights", "w", "-iterations", "0"], "--iterations"),
        (["time", "-model", "m", "-phase", "BOTH"], "--phase"),
        (["dance"], "there is no command 'dance'"),
        (["tarin", "-solver", "s"], "did you mean train"),
        ([], "a command is missing"),
    ],
)
def test_a_mistake_is_one_line_and_a_status(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    log = run(*arguments, cwd=tmp_path, status=1)
    lines = [line for line in messages(log) if line != "Use CPU."]
    assert len(lines) == 1
    assert lines[0].startswith("hearth: ")
    assert said in lines[0]


def test_a_misspelt_layer_type_gets_a_suggestion(tmp_path: Path) -> None:
    solver = write_solver(tmp_path, "", NET.replace("InnerProduct", "InnerProdukt"))
    log = run("train", "-solver", solver, cwd=tmp_path, status=1)
    assert "layer 'ip': unknown layer type 'InnerProdukt'; did you mean InnerProduct" in log


def test_help_lists_commands_and_flags(tmp_path: Path) -> None:
    said = run("--help", cwd=tmp_path)
    for command in ("train", "test", "time", "device_query", "upgrade_net_proto_text", "draw"):
        assert f"\n  {command} " in said
    assert "trainer" not in said
    assert "Usage: hearth train" in run("train", "-help", cwd=tmp_path)
    assert "--solver" in run("train", "-help", cwd=tmp_path)
    assert "--phase" not in run("train", "-help", cwd=tmp_path)
