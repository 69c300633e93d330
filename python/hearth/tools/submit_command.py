"""Builds the spark-submit commands for an archive of `hearth pack`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import hearth
from hearth.errors import HearthError

# Name of the unpacked archive's folder in a container's working directory.
FOLDER = "hearth_pack"
_EXAMPLE = (
    "-train", "-conf", "solver.prototxt", "-clusterSize", "2", "-model", "models/net.caffemodel",
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    """The program to submit: a Python file, its arguments, and the local files that it reads."""

    file: str
    arguments: tuple[str, ...]
    files: tuple[str, ...] = ()
    executors: int = 2


def program_of(words: Sequence[str]) -> Program:
    """Parses a program's file and arguments, or CaffeOnSpark's flags if there is no file.

    Raises:
        HearthError: a named solver or net does not exist, or is invalid.
    """
    words = list(words[1:] if words[:1] == ["--"] else words) or list(_EXAMPLE)
    if not words[0].startswith("-"):
        return Program(words[0], tuple(words[1:]))
    main = Path(hearth.__file__).resolve().parent / "caffeonspark" / "__main__.py"
    solver = _value(words, "conf")
    files = tuple(prototxts(solver)) if solver and list(_EXAMPLE) != words else ()
    size = _value(words, "clusterSize")
    executors = int(size) if size and size.isdecimal() else 2
    return Program(str(main), tuple(words), files or ("solver.prototxt", "net.prototxt"), executors)


def prototxts(solver: str) -> list[str]:
    """A solver and its net for --files, which puts both into one folder.

    Raises:
        HearthError: one of them does not exist or cannot be parsed, or the net would not be found.
    """
    from hearth.files.uri import local_path
    from hearth.native._core import parse_prototxt

    path = local_path(solver)
    if path is None or not Path(path).is_file():
        raise HearthError(f"-conf {solver}: there is no such file (looked for {path})")
    try:
        net = parse_prototxt(Path(path).read_text(), path, "SolverParameter").get("net", "")
    except ValueError as error:
        raise HearthError(str(error)) from error
    local = local_path(net, path) if net else None
    if local is None or not Path(local).is_file():
        raise HearthError(f"{solver} has `net: {net!r}`: there is no such file")
    if net != Path(net).name:
        raise HearthError(
            f"{solver} has `net: {net!r}`: --files puts both into one folder, so set the net "
            f'without a folder (net: "{Path(net).name}", in the same folder as the solver)'
        )
    return [path, local]


def commands(archive: Path, environment: bool, program: Program) -> dict[str, str]:
    """Multi-line commands by their descriptions."""
    shown = shlex.quote(str(archive))
    common = ["--num-executors", str(program.executors), "--archives", f"{shown}#{FOLDER}"]
    quiet = ["--conf", "spark.dynamicAllocation.enabled=false"]
    client = ["spark-submit --master yarn", *_pairs(common + quiet)]
    cluster = ["spark-submit --master yarn --deploy-mode cluster", *_pairs(common + quiet)]
    if environment:
        python = f"--conf spark.pyspark.python=./{FOLDER}/bin/python"
        client += [python, f"--conf spark.pyspark.driver.python={shlex.quote(sys.executable)}"]
        cluster += [python]
    else:
        paths = f"PYTHONPATH=./{FOLDER}/python"
        client += [f"--conf spark.executorEnv.{paths}"]
        cluster += [f"--conf spark.executorEnv.{paths}", f"--conf spark.yarn.appMasterEnv.{paths}"]
    if program.files:
        cluster.append(f"--files {','.join(map(shlex.quote, program.files))}")
    client.append(_call(program.file, program.arguments))
    cluster.append(_call(program.file, _in_container(program)))
    return {
        "Client mode, the driver here": " \\\n    ".join(client),
        "Cluster mode, the driver in a container of YARN's": " \\\n    ".join(cluster),
    }


def _in_container(program: Program) -> list[str]:
    """The program's arguments, with the solver's path replaced by its name in the working
    directory."""
    names = {file: Path(file).name for file in program.files}
    words = []
    for flag, word in zip(("", *program.arguments), program.arguments, strict=False):
        is_solver = flag in ("-conf", "--conf") and bool(names)
        words.append(Path(word).name if is_solver else word)
    return words


def _call(file: str, arguments: Sequence[str]) -> str:
    return shlex.join([file, *arguments])


def _pairs(words: Sequence[str]) -> list[str]:
    return [f"{words[i]} {words[i + 1]}" for i in range(0, len(words), 2)]


def _value(words: Sequence[str], flag: str) -> str:
    """The value after -flag, or after "-flag="."""
    for i, word in enumerate(words):
        name, equals, value = word.lstrip("-").partition("=")
        if name == flag and word.startswith("-"):
            return value if equals else "".join(words[i + 1 : i + 2])
    return ""
