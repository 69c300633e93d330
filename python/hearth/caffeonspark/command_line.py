"""Runs the command line of CaffeOnSpark."""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING

from hearth.caffeonspark.flags import FlagError, build_parser, parse_flags, refuse_tool_flags
from hearth.native.failure import Failure

if TYPE_CHECKING:
    from hearth.caffeonspark.config import Config
    from hearth.caffeonspark.interrupts import Started


def run(arguments: Sequence[str], started: Started) -> int:
    """Runs the flags' commands; calls `started` with the Spark session. Returns the status.

    Raises:
        Exception: a command failed; is_expected() distinguishes users' errors from bugs.
    """
    if not arguments or arguments[0] in ("-h", "-help", "--help"):
        build_parser().print_help()
        return 0
    master, conf, rest = split_spark(arguments)
    flags = parse_flags(rest)
    refuse_tool_flags(flags)
    if not (flags.is_training or flags.is_test or flags.features):
        raise FlagError("nothing to do: set -train, -test or -features")
    if (flags.ui or flags.log_dir) and not flags.is_training:
        raise FlagError("-ui and -logDir need a training: set -train, or leave them out")
    if flags.precision == "int8" and flags.is_training:
        raise FlagError("-precision int8 is for -test and -features: train with float32 or bf16")
    if not flags.proto_file:
        raise FlagError("-conf is missing: the solver prototxt")
    return _run((master, conf), rest, started)


def split_spark(arguments: Sequence[str]) -> tuple[str | None, dict[str, str], list[str]]:
    """Extracts `--master URL` and each `--conf spark.KEY=VALUE`; returns the other arguments for
    CaffeOnSpark. A `--conf` whose value has another form is CaffeOnSpark's -conf.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--master", "-master")
    parser.add_argument("--conf", action="append", default=[])
    known, rest = parser.parse_known_args(list(arguments))
    conf = {}
    for value in known.conf:
        key, equals, setting = value.partition("=")
        if equals and key.startswith("spark."):
            conf[key] = setting
        else:
            rest = ["-conf", value, *rest]
    return known.master, conf, rest


def is_expected(error: Exception) -> bool:
    """Whether the error is the user's. Any other error is a bug and is shown with its traceback."""
    of_spark = type(error).__module__.startswith("pyspark.errors")
    return of_spark or isinstance(error, (FlagError, RuntimeError, OSError))


def one_line(error: BaseException) -> str:
    """The reason that a rank reported, or otherwise the first line (Spark's messages are long)."""
    failure = Failure.find(str(error))
    if failure is not None:
        return failure.text
    if isinstance(error, socket.gaierror):  # raised when Spark connects; lacks the host name
        return (
            f"a host name cannot be resolved ({error}): check that localhost and "
            f"{socket.gethostname()} are in /etc/hosts"
        )
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _run(cluster: tuple[str | None, dict[str, str]], arguments: list[str], started: Started) -> int:
    """Runs the job on `cluster`, a pair of an optional Spark master and Spark settings."""
    from hearth.caffeonspark.config import Config
    from hearth.caffeonspark.flag_files import check_before_start
    from hearth.spark import session as spark_session

    config = Config(None, arguments)  # most errors are found here, before Spark starts
    check = partial(check_before_start, config)
    executors = max(2, config.cluster_size)
    master, conf = cluster
    spark = spark_session.start("CaffeOnSpark", executors, master, check, conf)
    config.spark = spark
    failed = True
    try:
        started(spark)
        run_config(config)
        failed = False
    finally:
        spark_session.stop(spark, failed)
    return 0


def run_config(config: Config) -> None:
    """Trains, then extracts features or tests, according to the flags."""
    from hearth.caffeonspark.caffe_on_spark import CaffeOnSpark
    from hearth.caffeonspark.data_source import DataSource
    from hearth.files.uri import write_text

    cos, sources = CaffeOnSpark(config.spark), DataSource(config.spark)
    if config.is_training:
        train = sources.getSource(config, True)
        if config.interleaves_validation:
            cos.trainWithValidation(train, sources.getSource(config, False))
        else:
            cos.train(train)
    if config.is_feature:
        features = cos.features(sources.getSource(config, False))
        features.write.format(config.output_format).save(config.output_path)
    elif config.is_test:
        means = cos.test(sources.getSource(config, False))
        lines = [f"{name}: {','.join(map(repr, values))}\n" for name, values in means.items()]
        write_text(config.output_path, "".join(lines), config.spark)
        sys.stdout.write("".join(lines))
        if config.precision != "float32":
            sys.stdout.writelines(compared_with_float32(config, means))


def compared_with_float32(config: Config, means: dict[str, list[float]]) -> Iterator[str]:
    """Yields a line per mean that compares it with the mean computed in float32, like `hearth
    test`."""
    from hearth.caffeonspark.caffe_on_spark import CaffeOnSpark
    from hearth.caffeonspark.data_source import DataSource

    precision = config.precision
    tested = [x for x in config.net["layer"] if {"phase": "TRAIN"} not in x.get("include", [])]
    if any(layer["type"] == "HDF5Output" for layer in tested):
        reason = "as that would write the net's HDF5Output again"
        yield f"{precision} is not compared with float32, {reason}\n"
        return
    yield "computing the same rows in float32\n"
    exact = copy(config)
    exact.precision = "float32"
    source = DataSource(config.spark).getSource(exact, False)
    float32 = CaffeOnSpark(config.spark).test(source)
    for name, values in means.items():
        for value, expected in zip(values, float32[name], strict=True):
            both = f"float32 {expected:.6g}, {precision} {value:.6g}"
            yield f"{name}: {both}, difference {value - expected:+.6g}\n"
