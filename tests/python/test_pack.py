"""`hearth pack`: relocatable archives for a Python without hearth."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from bare_python import bare_python
from program import write_solver

import hearth
from hearth import HearthError, native
from hearth.tools import pack, pack_environment
from hearth.tools.carried_libraries import libraries_of
from hearth.tools.pack_archive import loaded_part
from hearth.tools.submit_command import program_of, prototxts


def run(*command: str, folder: Path, status: int = 0, **environment: str) -> str:
    """Output of a program with a minimal environment."""
    known = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **environment}
    done = subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True)
    assert done.returncode == status, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def packed(folder: Path, *flags: str) -> Path:
    """Packs and unpacks an archive; returns the folder."""
    assert pack.main(["-o", str(folder / "packed.tar"), *flags]) == 0
    with tarfile.open(folder / "packed.tar") as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (folder / "packed.tar").unlink()
    return folder / "unpacked"


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> str:
    return bare_python(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Path:
    return packed(tmp_path_factory.mktemp("archive"))


def test_nodes_need_python_alone(archive, python, tmp_path):
    assert "No module named" in run(python, "-c", "import hearth", folder=tmp_path, status=1)
    write_solver(tmp_path, 'max_iter: 2 snapshot_prefix: "net"')
    program = str(archive / "bin" / "hearth")
    said = run(program, "train", "--solver=solver.prototxt", folder=tmp_path, PYSPARK_PYTHON=python)
    assert "Optimization Done" in said
    assert (tmp_path / "net_iter_2.caffemodel").exists()


# Prints the libraries that are mapped once the interpreter has loaded the engine, as for Python
# layers.
MAPS = """
import caffe, tensorflowonspark
print(*{line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if "/lib" in line})
"""


def test_all_libraries_are_from_the_archive_or_the_system(archive, python, tmp_path):
    said = run(python, "-c", MAPS, folder=tmp_path, PYTHONPATH=str(archive / "python"))
    libraries = {path for path in said.split() if ".so" in path and "/site-packages/" not in path}
    assert any(path.startswith(str(archive)) and "libdnnl" in path for path in libraries)
    assert not [path for path in libraries if "torch" in path]


def test_the_engine_finds_its_libraries_in_the_archive(archive, python, tmp_path):
    code = (
        "import subprocess; from hearth import native; "
        "(engine,) = native.DIRECTORY.glob('_caffe.*.so'); "
        "print(subprocess.check_output(['ldd', engine], env=native.environment(), text=True))"
    )
    said = run(python, "-c", code, folder=tmp_path, PYTHONPATH=str(archive / "python"))
    for name in ("libdnnl", "libjpeg", "libleveldb"):
        lines = [line for line in said.splitlines() if line.strip().startswith(name)]
        assert lines and all(str(archive) in line for line in lines), said


def test_libraries_are_stripped(archive):
    (packed,) = archive.rglob("libdnnl.so.3")
    (engine,) = native.DIRECTORY.glob("_caffe.*.so")
    size = libraries_of([engine])[packed.name].stat().st_size
    assert packed.stat().st_size < 0.9 * size
    assert loaded_part(b"no ELF file") == b"no ELF file"


def test_another_python_is_refused(archive, python, tmp_path):
    native = archive / "python" / "hearth" / "native"
    (module,) = native.glob("_core.*.so")
    other = module.rename(module.with_name("_core.cpython-39-x86_64-linux-gnu.so"))
    try:
        code = "from hearth.native._core import parse_prototxt"
        said = run(
            python, "-c", code, folder=tmp_path, status=1, PYTHONPATH=str(archive / "python")
        )
    finally:
        other.rename(module)
    assert f"compiled parts ({other}) are not for this Python" in said.splitlines()[-1]


def test_an_archive_without_the_engine_is_small(tmp_path, python):
    root = packed(tmp_path, "--no-engine")
    assert sum(file.stat().st_size for file in root.rglob("*") if file.is_file()) < 40e6
    code = "import hearth.cluster, tensorflowonspark; from hearth.native import _core"
    run(python, "-c", code, folder=tmp_path, PYTHONPATH=str(root / "python"))


WHOLE = """
import ctypes, sqlite3, ssl, sys, numpy, hearth.cluster
from hearth.native import _core
loaded = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
print(sys.prefix, sys.executable, numpy.__file__, _core.__file__, *sorted(loaded))
"""


def test_a_whole_environment_moves(tmp_path):
    few = ("--without", "[!n]*", "--without", "nvidia-*", "--without", "networkx")
    root = packed(tmp_path, "--environment", "--no-engine", *few).rename(tmp_path / "moved")
    said = run(str(root / "bin" / "python"), "-c", WHOLE, folder=tmp_path).split()
    assert said[:4] and all(path.startswith(str(root)) for path in said[:4]), said
    outside = [path for path in said if not path.startswith((str(root), "/lib", "/usr/lib"))]
    assert not outside
    assert not [path for path in said if "libssl" in path and not path.startswith(str(root))]
    assert not list(root.glob("lib/python3*/site-packages/pyspark"))
    assert "Usage" in run(str(root / "bin" / "hearth"), "pack", "--help", folder=tmp_path).title()


def test_files_in_an_excluded_folder_are_excluded(tmp_path, monkeypatch):
    def install(name: str, *files: str) -> None:
        record = tmp_path / f"{name}-1.dist-info" / "RECORD"
        files = (*files, f"{record.parent.name}/METADATA")
        for file in files:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(f"Name: {name}\nVersion: 1\n")
        record.write_text("".join(f"{file},,\n" for file in files))

    install("pyspark", "pyspark/sql.py", "shared/spark.py", "alone.py", "__pycache__/alone.pyc")
    install("numpy", "numpy/core.py", "shared/numpy.py")
    leftovers = ("pyspark/work/app-1/0/stdout", "numpy/cache", "shared/new", "__pycache__/x.pyc")
    for leftover in leftovers:
        (tmp_path / leftover).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / leftover).touch()
    monkeypatch.setattr(pack_environment, "_folders_of_packages", lambda: [tmp_path])
    left_out = pack_environment._excluded(["pyspark"])
    names = {entry.name for entry in pack_environment._installed("site", left_out)}
    assert {name for name in names if "numpy-1" not in name} == {
        "site/numpy/core.py", "site/numpy/cache", "site/shared/numpy.py", "site/shared/new",
        "site/__pycache__/x.pyc",
    }  # fmt: skip


def test_a_conda_environment_is_packed_by_conda_pack(tmp_path, monkeypatch, capsys):
    (tmp_path / "conda-meta").mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    flags = ["--environment", "-o", str(tmp_path / "env.tar.gz")]
    assert pack.main(flags) == 1
    assert "conda install -c conda-forge conda-pack" in capsys.readouterr().err
    program = tmp_path / "bin" / "conda-pack"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$@" >"$4"\n')
    program.chmod(0o755)
    assert pack.main(flags) == 0
    assert (tmp_path / "env.tar.gz").read_text().startswith(f"-p {tmp_path} -o {tmp_path}/env")


@pytest.fixture
def solver(tmp_path) -> Path:
    (tmp_path / "net.prototxt").write_text('layer { name: "a" type: "ReLU" }')
    (tmp_path / "solver.prototxt").write_text('net: "net.prototxt" max_iter: 1')
    return tmp_path / "solver.prototxt"


def test_the_commands_are_those_of_the_program(solver, tmp_path, capsys):
    flags = ["-train", "-conf", str(solver), "-clusterSize=3", "-model", "a b"]
    target = tmp_path / "hearth.tgz"
    assert pack.main(["--no-engine", "-o", str(target), "--", *flags]) == 0
    said = capsys.readouterr().out
    client, cluster = said.replace(" \\\n    ", " ").split("spark-submit ")[1:]
    assert said.startswith(f"{target}: ") and " MB (" in said and "Python 3" in said
    for command in (client, cluster):
        assert f"--archives {target}#hearth_pack" in command
        assert "--num-executors 3" in command
        assert "--conf spark.executorEnv.PYTHONPATH=./hearth_pack/python" in command
        assert command.rstrip().endswith("-clusterSize=3 -model 'a b'") or "Cluster" in command
    assert f"-conf {solver} " in client and "--files" not in client
    assert f"--files {solver},{solver.with_name('net.prototxt')}" in cluster
    assert "-conf solver.prototxt " in cluster and "--deploy-mode cluster" in cluster


def test_a_users_program_is_named_unchanged():
    program = program_of(["--", "train.py", "--epochs", "3"])
    assert (program.file, program.arguments, program.files) == ("train.py", ("--epochs", "3"), ())


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["-o", "hearth.zip"], "extensions: .tar.gz, .tgz, .tar"),
        (["-o", "/nowhere/hearth.tar"], "the folder /nowhere does not exist"),
        (["--", "-train", "-conf", "gone.prototxt"], "-conf gone.prototxt: there is no such file"),
    ],
)
def test_mistakes_are_one_line(flags, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert pack.main(["--no-engine", *flags]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("hearth pack: ") and said in line
    assert not list(tmp_path.iterdir())


def test_pack_without_a_build_prints_one_line(tmp_path):
    said = run(
        sys.executable, "-m", "hearth.cli", "pack", folder=tmp_path, status=1,
        HEARTH_NATIVE_DIR=str(tmp_path), PYTHONPATH=str(Path(hearth.__file__).parents[1]),
    )  # fmt: skip
    assert said.count("\n") == 1 and f"no compiled parts in {tmp_path}" in said, said


def test_a_net_in_another_folder_would_not_be_found(solver, tmp_path):
    assert prototxts(str(solver)) == [str(solver), str(tmp_path / "net.prototxt")]
    (tmp_path / "nets").mkdir()
    (tmp_path / "net.prototxt").rename(tmp_path / "nets" / "net.prototxt")
    solver.write_text('net: "nets/net.prototxt" max_iter: 1')
    with pytest.raises(HearthError, match="set the net without a folder"):
        prototxts(str(solver))


def test_linked_packages_are_refused(tmp_path):
    (tmp_path / "packages").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "packages" / "mine.pth").write_text(f"{tmp_path}/linked\n")
    with pytest.raises(HearthError, match=r"mine.pth.*linked"):
        pack_environment._refuse_links(tmp_path / "packages")


def test_a_full_disk_leaves_no_partial_archive(tmp_path, capsys):
    resource = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))"
    code = f"{resource}; import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    code += "from hearth.tools import pack; raise SystemExit(pack.main(['--no-engine']))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 1 and "cannot be written" in done.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())
