"""The feed against plain Spark: the same cached rows, in one session, in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import marked_processes
import report
from hearth.tensorflowonspark import TFCluster
from tf_shapes import SHAPES, Shape
from tf_upstream import LEAST_S, Measured, add_pair
from tf_upstream_side import take_arrays, take_rows


def take_array(args: dict[str, int], ctx: Any) -> None:
    """A node that reads minibatches of an RDD as one array."""
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        batch = feed.next_numpy(args["batch_size"])
        if batch is not None:
            batch[0]


def iterate(rows: Iterator[Any]) -> None:
    for _ in rows:
        pass


def look(batches: Iterator[Any]) -> Iterator[Any]:
    """Reads the values of each batch as an array, as a consumer in the task would."""
    from hearth.rows.columns import column_to_numpy

    for batch in batches:
        column_to_numpy(batch.column(0), "0")
        yield batch.slice(0, 0).select([1])


def measured(call: Callable[[], Any], rows: int, least_s: float) -> Measured:
    """Repeats the call for at least `least_s` seconds; counts all processes of the session."""
    mark = marked_processes.own_mark()
    taken = 0
    before = marked_processes.cpu_seconds(mark)
    start = time.perf_counter()
    while (wall := time.perf_counter() - start) < least_s:
        call()
        taken += rows
    return taken / wall, (marked_processes.cpu_seconds(mark) - before) / taken * 1e6


class Bench:
    """The cases of one session."""

    def __init__(self, session: Callable[[], Any], table: report.Report, rounds: int, fewer: int):
        self._session = session
        self._table = table
        self._rounds = rounds
        self._fewer = fewer

    def shape(self, name: str) -> None:
        """The DataFrame's rows and the RDD's rows of one shape."""
        shape = SHAPES[name]
        count = shape.rows // self._fewer
        kinds = [f"dataframe/{name}", f"rdd/{name}", f"rdd/{name}/arrays"]
        if not any(map(self._table.wants, kinds)):
            return
        frame = shape.frame(self._session(), count)
        look_at = frame.mapInArrow(look, "id bigint")
        peer = (look_at.count, "mapInArrow that looks")
        self._case(kinds[0], shape, (take_arrays, frame, count), peer)
        rows = shape.rdd(frame)
        frame.unpersist()
        peer = (partial(rows.foreachPartition, iterate), "foreachPartition that iterates")
        self._case(kinds[1], shape, (take_rows, rows, count), peer)
        if shape.as_row is list:
            self._case(kinds[2], shape, (take_array, rows, count), peer)
        rows.unpersist()

    def _case(self, name: str, shape: Shape, feed: tuple, peer: tuple) -> None:
        """A cluster of one node that reads the rows, and its peer."""
        if not self._table.wants(name):
            return
        take, data, count = feed
        call, peer_name = peer
        mode = TFCluster.InputMode.SPARK
        args = {"batch_size": shape.batch_size}
        with TFCluster.run(self._session(), take, args, 1, 0, input_mode=mode) as cluster:
            train = partial(cluster.train, data, num_epochs=1)
            a, b = report.alternate(
                self._rounds,
                lambda: measured(train, count, LEAST_S / self._fewer),
                lambda: measured(call, count, LEAST_S / self._fewer),
            )
        add_pair(self._table, name, a, b, peer_name)
