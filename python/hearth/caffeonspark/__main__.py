"""`python -m hearth.caffeonspark`, or this file given to spark-submit: CaffeOnSpark's flags."""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Sequence

from hearth.caffeonspark.flags import FlagError, build_parser, parse_flags
from hearth.caffeonspark.interrupts import INTERRUPTED, Interrupts, run_in_thread
from hearth.native.failure import Failure


def split_master(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """Takes `--master URL` out of the arguments; the rest are CaffeOnSpark's."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--master", "-master")
    known, rest = parser.parse_known_args(list(arguments))
    return known.master, rest


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what the flags ask for. Returns the exit status; a user's error is one line."""
    with Interrupts() as interrupts:
        return _main(sys.argv[1:] if arguments is None else arguments, interrupts)


def _main(arguments: Sequence[str], interrupts: Interrupts) -> int:
    if not arguments or arguments[0] in ("-h", "-help", "--help"):
        build_parser().print_help()
        return 0
    try:
        master, rest = split_master(arguments)
        flags = parse_flags(rest)
        if not (flags.is_training or flags.is_test or flags.features):
            raise FlagError("nothing to do: give -train, -test or -features")
        if not flags.proto_file:
            raise FlagError("-conf is missing: the solver prototxt")
        return _run(master, rest, interrupts)
    except Exception as error:
        if not _is_expected(error):
            raise
        print(f"caffeonspark: {one_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        interrupts.begin()
        print("caffeonspark: interrupted", file=sys.stderr)
        return INTERRUPTED


def _is_expected(error: Exception) -> bool:
    """Whether the message is for the user; anything else is a defect and keeps its traceback."""
    of_spark = type(error).__module__.startswith("pyspark.errors")
    return of_spark or isinstance(error, (FlagError, RuntimeError, OSError))


def one_line(error: BaseException) -> str:
    """A rank's own reason where there is one, else the first line: Spark's texts go on for long."""
    failure = Failure.find(str(error))
    if failure is not None:
        return failure.text
    if isinstance(error, socket.gaierror):  # of Spark's own connections; it does not say which
        return (
            f"a host name cannot be resolved ({error}): are localhost and {socket.gethostname()} "
            "in /etc/hosts?"
        )
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _run(master: str | None, arguments: list[str], interrupts: Interrupts) -> int:
    from hearth.caffeonspark import Config
    from hearth.spark import session as spark_session

    config = Config(None, arguments)  # before Spark starts: most mistakes are found here
    spark = spark_session.start("CaffeOnSpark", max(2, config.cluster_size), master)
    config.spark = spark
    interrupts.take_over()
    try:
        run_config(config)
    finally:
        spark.stop()
    return 0


def run_config(config) -> None:
    """Trains, then extracts features or tests, as the flags say."""
    from hearth.caffeonspark import CaffeOnSpark, DataSource
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
        output = features.write.format(config.output_format)
        run_in_thread(config.spark, lambda: output.save(config.output_path))
    elif config.is_test:
        means = run_in_thread(config.spark, lambda: cos.test(sources.getSource(config, False)))
        lines = [f"{name}: {','.join(map(repr, values))}\n" for name, values in means.items()]
        write_text(config.output_path, "".join(lines), config.spark)
        sys.stdout.write("".join(lines))


if __name__ == "__main__":
    sys.exit(main())
