"""Runs the tools as programs: flags, a Spark session, one-line errors."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hearth.caffeonspark.flags import FlagError, parse_flags
from hearth.caffeonspark.interrupts import INTERRUPTED, run_interruptibly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hearth.caffeonspark.interrupts import Started

# A tool's defaults that differ from a training's, by attribute.
DEFAULTS: Mapping[str, Any] = {"output_path": "", "output_format": "parquet"}
# A tool's function: converts, and returns one sentence about the result.
Tool = Callable[["SparkSession", argparse.Namespace], str]


def main(
    name: str, tool: Tool, needed: Sequence[str], arguments: Sequence[str] | None = None
) -> int:
    """Runs a tool with the flags of the command line. Returns the exit status.

    `needed`: the required flags. Prints a user's error as one line on standard error.
    """

    given = sys.argv[1:] if arguments is None else arguments
    try:
        return run_interruptibly(lambda started: run((name, tool, needed), given, started))
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.__stderr__)
        return INTERRUPTED
    except Exception as error:
        from hearth.caffeonspark.command_line import is_expected, one_line

        if not is_expected(error):
            raise
        print(f"{name}: {one_line(error)}", file=sys.stderr)
        return 1


def run(named: tuple[str, Tool, Sequence[str]], given: Sequence[str], started: Started) -> int:
    """Runs a tool, given by name, function and required flags; calls `started` with the Spark
    session. Returns the status.

    Raises:
        Exception: the tool failed; command_line.is_expected() distinguishes users' errors from
            bugs.
    """
    from hearth.caffeonspark.command_line import split_spark
    from hearth.spark import session

    name, tool, needed = named
    if not given or given[0] in ("-h", "-help", "--help"):
        usage = " ".join(f"-{flag} X" for flag in needed)
        print(f"Usage: {name} {usage} [--master URL] [--conf spark.KEY=VALUE]...\n")
        print((tool.__doc__ or "").strip())
        return 0
    master, conf, rest = split_spark(given)
    flags = parse_flags(rest, DEFAULTS)
    _require(flags, needed)
    spark = session.start(name, max(2, flags.cluster_size), master, conf=conf)
    failed = True
    try:
        started(spark)
        begin = time.monotonic()
        said = tool(spark, flags)
        print(f"{name}: {said} in {time.monotonic() - begin:.1f} s", file=sys.stderr)
        failed = False
    finally:
        session.stop(spark, failed)
    return 0


def _require(flags: argparse.Namespace, needed: Sequence[str]) -> None:
    from hearth.caffeonspark.flags import FLAGS

    attributes = {flag.flag: flag.name for flag in FLAGS}
    for flag in needed:
        if getattr(flags, attributes[flag]) in ("", None):
            raise FlagError(f"-{flag} is missing")


def check_new(spark: SparkSession, uri: str) -> None:
    """Raises FlagError if the output already exists, before the tool works for hours."""
    if exists(spark, uri):
        raise FlagError(f"-output {uri} already exists: name another, or remove it")


def exists(spark: SparkSession, uri: str) -> bool:
    """Whether the file or folder exists; always False with Spark Connect, which cannot check."""
    from hearth.files.hadoop_files import HadoopFiles
    from hearth.files.uri import serving

    files = serving(HadoopFiles.of(spark), uri)
    return files is not None and files.exists(uri)
