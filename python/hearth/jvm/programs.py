"""Runs the command lines of spark-submit's main classes, with the same code as without a JVM.

The program creates its SparkContext in the requesting JVM.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from hearth.caffeonspark import command_line, tools
from hearth.caffeonspark.tools import program
from hearth.jvm.answers import Answer, Call

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _caffe_on_spark(call: Call) -> int:
    return command_line.run(call.arguments["flags"], _started)


def _tool(name: str, call: Call) -> int:
    module = import_module(f"{tools.__name__}.{name}")
    tool = (name, module.convert, module.NEEDED)
    return program.run(tool, call.arguments["flags"], _started)


def _inference(call: Call) -> int:
    from hearth.jvm import tensorflow

    return tensorflow.inference(call.arguments["flags"])


def _started(session: SparkSession) -> None:
    """Does not register the session for Ctrl-C: an interrupted JVM ends its SparkContext itself."""


ANSWERS: dict[str, Answer] = {
    "CaffeOnSpark": _caffe_on_spark,
    "Inference": _inference,
    **{name: partial(_tool, name) for name in tools.NAMES},
}
