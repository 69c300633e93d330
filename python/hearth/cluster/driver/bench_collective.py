"""`hearth bench-collective`: measures the speed of all-reduce by transport and size.

The ranks are executors of a Spark master; if no master is given, processes on this machine. If
hearth is not installed on the cluster's hosts, see `hearth pack`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from hearth import HearthError
from hearth.errors import invalid
from hearth.ranks import bench


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. On an error, prints one line on stderr and returns 1."""
    parser = argparse.ArgumentParser(
        prog="hearth bench-collective", description=__doc__.splitlines()[0].partition(": ")[2]
    )
    parser.add_argument("--master", help="Spark's master; default: processes of this machine")
    parser.add_argument("--ranks", type=int, default=2, help="number of ranks (default: 2)")
    parser.add_argument(
        "--sizes", default=",".join(bench.SIZES), help="comma-separated (%(default)s)"
    )
    parser.add_argument("--transports", default=",".join(bench.TRANSPORTS), help="(%(default)s)")
    options = parser.parse_args(arguments)
    try:
        if options.ranks < 2:
            raise invalid(f"--ranks {options.ranks}: an all-reduce needs 2 ranks or more")
        selection = bench.parsed(options.sizes, options.transports)
        print(bench.heading(options.ranks), flush=True)
        if options.master:
            lines = between_executors(options.master, options.ranks, selection)
        else:
            lines = bench.between_processes(options.ranks, selection)
        for figures in lines:
            print(bench.row(figures), flush=True)
    except (HearthError, ValueError, ConnectionError, TimeoutError, OSError) as error:
        print(f"hearth bench-collective: {error}", file=sys.stderr)
        return 1
    return 0


def between_executors(
    master: str, ranks: int, selection: bench.Selection
) -> Iterator[dict[str, Any]]:
    """Yields rank 0's messages as they arrive. Raises as measured()."""
    from hearth.spark import session

    spark = session.start("hearth bench-collective", ranks, master)
    try:
        yield from measured(spark, ranks, selection)
    finally:
        spark.stop()


def measured(spark: Any, ranks: int, selection: bench.Selection) -> Iterator[dict[str, Any]]:
    """Like between_executors(), but on the executors of an existing session.

    Raises:
        ReservationTimeoutError: not all nodes started.
        NodeError: a node failed.
    """
    from hearth.cluster import results
    from hearth.cluster.driver import cluster

    def rank_main(_: Any, ctx: Any) -> None:
        def say(figures: dict[str, Any]) -> None:
            ctx.mgr.report_value(json.dumps(figures).encode())

        bench.measure(ctx.place(), selection, say)

    with cluster.run(spark, rank_main, nodes=ranks, feeds=()) as running:
        for piece in running.running.watch.follow_values(0):
            yield json.loads(results.joined([piece]))


if __name__ == "__main__":
    sys.exit(main())
