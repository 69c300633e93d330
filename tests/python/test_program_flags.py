"""Flags of Caffe's tools: the conventions of gflags and of the logging library."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from program import TIMEOUT_S, messages, run, signalled, write_solver

import hearth

DONE = "Optimization Done."


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder with 20 images, where image n has brightness n, and their list."""
    for n in range(20):
        Image.fromarray(np.full((2, 2), n, np.uint8)).save(tmp_path / f"{n}.png")
    (tmp_path / "list").write_text("".join(f"{n}.png {n}\n" for n in range(20)))
    return tmp_path


def test_flags_may_stand_before_the_command(tmp_path: Path) -> None:
    solver = write_solver(tmp_path)
    for arguments in (
        ["-solver", solver, "train"],
        [f"--solver={solver}", "--logtostderr", "train", "-threads", "1"],
        ["--alsologtostderr=0", "-v", "1", "train", "-solver", solver],
    ):
        assert DONE in messages(run(*arguments, cwd=tmp_path))
    assert "Usage: hearth train" in run("--help", "train", cwd=tmp_path)


def test_version_prints_the_version(tmp_path: Path) -> None:
    assert run("--version", cwd=tmp_path) == f"hearth {hearth.__version__}\n"


@pytest.mark.parametrize("flag", ["--help", "-h", "--version"])
def test_an_unknown_command_is_a_mistake_with_any_flag(flag: str, tmp_path: Path) -> None:
    for words in (["trian", flag], [flag, "trian"]):
        said = run(*words, cwd=tmp_path, status=1)
        assert said.startswith("hearth: there is no command 'trian'")
        assert "train" in said


def test_the_help_lists_the_commands_for_spark_clusters(tmp_path: Path) -> None:
    said = run("--help", cwd=tmp_path)
    for command in ("doctor", "pack", "bench-collective", "build-device", "report", "timeline"):
        assert f"\n  {command} " in said
    assert "hearth Vocab" in said
    assert "did you mean doctor" in run("doctr", cwd=tmp_path, status=1)
    assert "a command is missing; see hearth --help" in run(cwd=tmp_path, status=1)


def test_without_the_engine_the_commands_that_remain_are_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hearth.cli", "--help"]
    environment = {**os.environ, "HEARTH_NATIVE_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "without it there are: bench-collective, build-device, doctor, pack" in done.stderr


@pytest.mark.parametrize("flag", ["--version", "-version"])
def test_version_needs_no_compiled_modules(flag: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hearth.cli", flag]
    environment = {**os.environ, "HEARTH_NATIVE_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"hearth {hearth.__version__}\n"), done.stderr


def test_the_last_value_of_a_flag_counts(tmp_path: Path) -> None:
    solver = write_solver(tmp_path)
    log = run("-solver=none.prototxt", "train", "-level", "-1", "-solver", solver, cwd=tmp_path)
    assert DONE in log


def test_files_of_flags_are_read(tmp_path: Path) -> None:
    solver = write_solver(tmp_path)
    (tmp_path / "flags").write_text(f"# ours\n\n  --solver={solver}\n-flagfile=more\n")
    (tmp_path / "more").write_text("-threads=1\n--noalsologtostderr\n")
    assert DONE in run("--flagfile=flags", "train", cwd=tmp_path)
    assert DONE in run("train", "-flagfile", "more,flags", cwd=tmp_path)
    (tmp_path / "flags").write_text("solver\n")
    assert "flags:1: 'solver' is not a flag" in run("-flagfile=flags", cwd=tmp_path, status=1)
    (tmp_path / "flags").write_text("--flagfile=flags\n")
    assert "-flagfile flags includes itself" in run("-flagfile=flags", cwd=tmp_path, status=1)
    assert "nowhere" in run("train", "-flagfile=nowhere", cwd=tmp_path, status=1)


def labels(folder: Path, *flags: str) -> list[int]:
    """The labels in a database that is made from the images, in the database's order."""
    from hearth.native import _caffe

    run("convert_imageset", *flags, "./", "list", f"db{len(flags)}", cwd=folder)
    net = _caffe.Net(
        f"""layer {{ name: "d" type: "Data" top: "x" top: "y"
            data_param {{ source: "{folder}/db{len(flags)}" backend: LMDB batch_size: 20 }} }}""",
        "TEST",
    )
    net.forward()
    return [int(label) for label in net.blobs["y"].data]


def test_switches_have_a_negated_form(images: Path) -> None:
    in_order = list(range(20))
    assert labels(images, "-shuffle") != in_order
    assert labels(images, "-shuffle", "--noshuffle") == in_order
    assert labels(images, "-shuffle", "--noshuffle", "--shuffle=FALSE") == in_order
    assert labels(images, "-shuffle=0", "-gray", "-nogray", "--shuffle=yes") != in_order


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "--noslover"], "there is no flag --noslover"),
        (["train", "--nosolver"], "there is no flag --nosolver; did you mean --solver"),
        (["-slover=x", "train"], "there is no flag --slover; did you mean --solver"),
        (["train", "-solver"], "--solver needs a value"),
        (["train", "-solver", "-gpu", "0"], "--solver needs a value"),
        (["train", "-flagfile"], "-flagfile needs the name of a file"),
        (["convert_imageset", "-shuffle=perhaps"], "--shuffle takes true or false, not 'perhaps'"),
        (["train", "-minloglevel=some"], "--minloglevel takes a number, not 'some'"),
        (["train", "-log_dir=nowhere"], "nowhere/caffe."),
        (["train", "--gray"], "--gray"),
    ],
)
def test_a_wrong_flag_is_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    log = run(*arguments, cwd=tmp_path, status=1)
    assert said in log
    assert log.count("\n") == 1


def test_log_dir_has_the_log_under_glogs_names(tmp_path: Path) -> None:
    solver = write_solver(tmp_path)
    (tmp_path / "logs").mkdir()
    shown = messages(run("train", "-solver", solver, "--log_dir=logs", cwd=tmp_path))
    kept = (tmp_path / "logs/caffe.INFO").read_text()
    assert messages(kept)[3:] == shown
    (real,) = (tmp_path / "logs").glob("caffe.*.log.INFO.*")
    assert re.search(r"\.log\.INFO\.\d{8}-\d{6}\.\d+$", real.name)
    assert not (tmp_path / "logs/caffe.ERROR").exists()


def test_stderr_or_files_alone_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_solver(tmp_path)
    train = ["train", "-solver", "solver.prototxt"]
    (tmp_path / "logs").mkdir()
    run(*train, "--log_dir=logs", "--logtostderr", cwd=tmp_path)
    assert list((tmp_path / "logs").iterdir()) == []
    assert run(*train, "--log_dir=logs", "--noalsologtostderr", cwd=tmp_path) == ""
    assert DONE in (tmp_path / "logs/caffe.INFO").read_text()
    # Environment variables work like flags; log files are named after the command.
    monkeypatch.setenv("GLOG_log_dir", "logs")
    monkeypatch.setenv("GLOG_alsologtostderr", "false")
    files = ["net.prototxt", "new.prototxt"]
    assert run("upgrade_net_proto_text", *files, cwd=tmp_path) == ""
    assert "Wrote" in (tmp_path / "logs/upgrade_net_proto_text.INFO").read_text()
    # A fatal error goes to stderr, whatever the flags, and to the files.
    error = run("upgrade_net_proto_text", "none.prototxt", "x", cwd=tmp_path, status=1)
    assert error.startswith("hearth: ") and error.count("\n") == 1
    kept = (tmp_path / "logs/upgrade_net_proto_text.ERROR").read_text()
    assert error.removeprefix("hearth: ") in kept


@pytest.mark.parametrize("variable", [False, True])
def test_minloglevel_leaves_lines_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: bool
) -> None:
    solver = write_solver(tmp_path)
    (tmp_path / "logs").mkdir()
    if variable:
        monkeypatch.setenv("GLOG_minloglevel", "1")
    flags = [] if variable else ["-minloglevel", "1"]
    assert run("train", "-solver", solver, "-log_dir=logs", *flags, cwd=tmp_path) == ""
    assert DONE not in (tmp_path / "logs/caffe.INFO").read_text()
    assert DONE in run("train", "-solver", solver, "-minloglevel=0", cwd=tmp_path)


def test_tools_in_python_keep_their_own_flags(tmp_path: Path) -> None:
    write_solver(tmp_path)
    arguments = ["net.prototxt", "net.dot", "-rankdir", "TB", "--nologtostderr", "-v", "1"]
    assert "Drawing net" in run("--minloglevel=2", "draw", *arguments, cwd=tmp_path)
    assert "rankdir=TB" in (tmp_path / "net.dot").read_text()


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_without_an_effect_is_ignored(tmp_path: Path, which: signal.Signals) -> None:
    flags = ["-sigint_effect=none" if which == signal.SIGINT else "-sighup_effect=none"]
    last = signal.SIGHUP if which == signal.SIGINT else signal.SIGINT
    flags.append("-sighup_effect=stop" if which == signal.SIGINT else "-sigint_effect=stop")
    signals = {"Iteration 10 ": which, "Iteration 1000 ": last}
    status, log = signalled(tmp_path, signals, *flags)
    assert status == 0
    assert log[-1] == "Optimization stopped early."
    (state,) = tmp_path.glob("*.solverstate")
    assert int(re.findall(r"\d+", state.name)[0]) >= 1000


def test_the_tools_have_programs_of_their_names(tmp_path: Path) -> None:
    write_solver(tmp_path)
    root = Path(__file__).resolve().parents[2]
    project = (root / "pyproject.toml").read_text()
    scripts = re.findall(r'^(\w+) = "hearth\.cli:main"$', project, re.M)
    commands = re.findall(r"^  (\w+) ", run("--help", cwd=tmp_path).split("Options:")[1], re.M)
    of_caffe = {"train", "test", "time", "device_query", "classify"}
    of_caffe |= {"draw", "plot", "parse_log", "report", "doctor", "pack", "timeline"}
    assert set(scripts) == {"hearth", "caffe", *commands} - of_caffe

    def call(name: str, *arguments: str) -> str:
        script = tmp_path / name
        script.write_text("import sys\nfrom hearth.cli import main\nsys.exit(main())\n")
        done = subprocess.run(
            [sys.executable, script, *arguments],
            cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S, check=True,
        )  # fmt: skip
        return done.stdout + done.stderr

    assert DONE in call("caffe", "train", "-solver", "solver.prototxt")
    assert "Wrote" in call("upgrade_net_proto_text", "-v=1", "net.prototxt", "new.prototxt")
