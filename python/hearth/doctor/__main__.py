"""Examines a cluster before a training is started on it.

    hearth doctor --master yarn            or --master spark://HOST:7077, or another master
    hearth doctor --remote sc://HOST       a server of Spark Connect
    hearth doctor                          spark-defaults.conf's master, else two executors here

Collects versions, limits, folders, GPUs and clocks of driver and executors, which connect to each
other as ranks would. Ends with status 1 if there is a problem.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hearth.doctor.findings import Finding
from hearth.errors import HearthError
from hearth.spark.failures import start_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Time limit for connecting to a Spark Connect server.
_SERVER_S = 30.0
_COLORS = {"ok": "green", "warning": "yellow", "problem": "red", "unknown": "dim"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="hearth doctor", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--master", help="as of spark-submit")
    parser.add_argument("--remote", help="a Spark Connect server: sc://host:port")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--tasks", type=int, help="number of concurrent tasks (default: all slots)")
    given = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    if wrong := [each for each in given.conf if "=" not in each]:
        parser.error(f"--conf takes KEY=VALUE, not {wrong[0]!r}")
    if given.tasks is not None and given.tasks < 1:
        parser.error(f"--tasks takes a number from 1 on, not {given.tasks}")
    try:
        found = _examine(given)
    except HearthError as error:
        print(f"hearth doctor: {error}", file=sys.stderr)
        return 1
    except Exception as error:  # Spark's exception, whose text contains a JVM stack
        remote = (given.remote or "").partition(";")[0]  # may contain a token
        where = given.master or remote or "the default master"
        print(f"hearth doctor: Spark at {where}: {start_line(str(error))}", file=sys.stderr)
        return 1
    show(found)
    return 1 if any(finding.level == "problem" for finding in found) else 0


def _examine(arguments: argparse.Namespace) -> list[Finding]:
    from hearth import doctor

    print("hearth doctor: starting Spark", file=sys.stderr)
    spark = _session(arguments)
    print("hearth doctor: asking the executors", file=sys.stderr)
    try:
        return doctor.examine(spark, arguments.tasks)
    finally:
        spark.stop()


def _session(arguments: argparse.Namespace) -> SparkSession:
    from pyspark.sql import SparkSession

    from hearth.spark import session
    from hearth.spark.user_settings import user_settings

    conf = dict(each.split("=", 1) for each in arguments.conf)
    if arguments.remote:
        _await_server(arguments.remote)
        builder = SparkSession.builder.appName("hearth doctor").remote(arguments.remote)
        for key, value in conf.items():
            builder = builder.config(key, value)
        return session.as_session(builder.getOrCreate())
    master = arguments.master or (user_settings() | conf).get("spark.master")
    return session.start("hearth doctor", master=master, conf=conf)


def _await_server(remote: str) -> None:
    """Waits until a Spark Connect server accepts connections. Raises HearthError after _SERVER_S;
    Spark would retry for minutes.
    """
    import grpc
    from pyspark.sql.connect import client

    from hearth.errors import UnavailableError

    if not remote.startswith("sc://"):  # Spark starts the server itself
        return
    where = remote.partition(";")[0]  # the rest may contain a token
    print(f"hearth doctor: connecting to {where}, for up to {_SERVER_S:g} s", file=sys.stderr)
    # DefaultChannelBuilder exists since Spark 4.0, where ChannelBuilder is abstract.
    builder = getattr(client, "DefaultChannelBuilder", None) or client.ChannelBuilder
    channel = builder(remote).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=_SERVER_S)
    except grpc.FutureTimeoutError:
        raise UnavailableError(
            f"the Spark Connect server at {where} cannot be reached within {_SERVER_S:g} s: start "
            "it, and check host, port (15002 by default), use_ssl and the firewall"
        ) from None
    finally:
        channel.close()


def show(found: list[Finding]) -> None:
    """Prints the table, with advice below it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 120)
    table = Table("check", "found", "", box=box.SIMPLE)
    for finding in found:
        level = Text(finding.level, style=_COLORS[finding.level])
        table.add_row(Text(finding.check), Text(finding.found), level)
    console.print(table)
    for finding in found:
        if finding.advice:
            console.print(Text(f"{finding.check}: {finding.advice}"), soft_wrap=True)
    problems = sum(finding.level == "problem" for finding in found)
    summary = f"{problems} problem{'s' * (problems > 1)}" if problems else "no problem found"
    console.print(summary)


if __name__ == "__main__":
    sys.exit(main())
