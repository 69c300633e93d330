"""Errors that CaffeOnSpark's command reports before Spark starts: one line and exit status 1."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from hearth.caffeonspark.__main__ import main
from hearth.caffeonspark.command_line import compared_with_float32, one_line

# The files in folder {0}, the command line, and the expected error.
FRONT = {
    "no solver": ({}, "-train", r"-conf is missing: the solver prototxt"),
    "missing solver": ({}, "-train -conf {0}/gone", r"-conf .*gone: there is no such file"),
    "empty solver": ({"s": ""}, "-train -conf {0}/s", r"-conf .*/s is empty"),
    "binary solver": (
        {"s": b"\xff\xfe\x80"},
        "-train -conf {0}/s",
        r".*prototxt: it is not text",
    ),
    "unreadable": ({}, "-train -conf /proc/self/mem", r".* cannot be read as a prototxt: Input"),
    "a solver without net": ({"s": "max_iter: 1"}, "-train -conf {0}/s", r".*/s has no `net:`"),
    "missing net": ({"s": 'net: "gone"'}, "-train -conf {0}/s", r"net: gone: there is no such"),
    "empty net": ({"s": 'net: "n"', "n": " "}, "-train -conf {0}/s", r"net: n: .*/n is empty"),
    "wrong field": ({"s": "nett: 1"}, "-train -conf {0}/s", r".*/s:1:1: found 'nett', expected"),
    "cut off": ({"s": 'net: "n"', "n": "layer { n"}, "-train -conf {0}/s", r".*/n:1:9: found"),
    "nothing to do": ({}, "-conf {0}/s", r"nothing to do: set -train, -test or -features"),
    "int8": (
        {},
        "-train -precision int8 -conf {0}/s",
        r"-precision int8 is for -test and -features: train with float32 or bf16",
    ),
    "limit": (
        {},
        "-train -maxBadRecords=few",
        r"-maxBadRecords is 'few'; it must be a number of rows",
    ),
}


@pytest.mark.parametrize("case", FRONT)
def test_the_command_reports_errors_in_one_line(case: str, tmp_path: Path, capsys) -> None:
    files, flags, said = FRONT[case]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main(flags.format(tmp_path).split()) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert re.match(f"caffeonspark: {said}", lines[0]), lines


def test_an_unresolvable_host_name_is_reported_with_a_remedy() -> None:
    said = one_line(socket.gaierror(-2, "Name or service not known"))
    assert "Name or service not known" in said and "/etc/hosts" in said


def test_a_net_that_writes_its_outputs_runs_once_with_each_precision():
    config = SimpleNamespace(precision="int8", net={"layer": [{"type": "HDF5Output"}]}, spark=None)
    (line,) = compared_with_float32(config, {"accuracy": [1.0]})
    assert line.startswith("int8 is not compared with float32")
