"""Command lines: what spark-submit runs as the main class, by the same code as without a JVM.

The program makes its own SparkContext, in the JVM that asks.
"""

from __future__ import annotations

from hearth.caffeonspark import command_line
from hearth.jvm.answers import Answer, Call


def _caffe_on_spark(call: Call) -> int:
    return command_line.run(call.arguments["flags"], lambda session: None)


ANSWERS: dict[str, Answer] = {"CaffeOnSpark": _caffe_on_spark}
