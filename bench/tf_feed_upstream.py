"""TensorFlowOnSpark's way of feeding, as far as its speed goes, on a multiprocessing manager.

Each row is put into a JoinableQueue behind a manager's proxy and taken out by another; at the end
of a partition the feeder joins the queue, looking once a second (TensorFlowOnSpark 2.2.5).
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from hearth.tensorflowonspark import TFManager

_KEY = b"bench"
_POLL_S = 1.0


def consume(address: str, batch_size: int) -> None:
    """The node: takes batches, row by row, until the feed's end."""
    queue = TFManager.connect(address, _KEY).get_queue("input")
    ended = False
    while not ended:
        rows = []
        while len(rows) < batch_size and not ended:
            item = queue.get(block=True)
            ended = item is None
            if not ended:
                rows.append(item)
            queue.task_done()


def feed(address: str, rows: Iterator[Any]) -> None:
    """The Spark task: puts the rows of a partition and waits until they are used up."""
    queue = TFManager.connect(address, _KEY).get_queue("input")
    for row in rows:
        queue.put(row, block=True)
    joined = threading.Thread(target=queue.join)
    joined.start()
    while joined.is_alive():  # one look a second, however soon the queue is empty
        threading.Event().wait(_POLL_S)


@contextmanager
def node(batch_size: int) -> Iterator[Callable[[Any], None]]:
    """A running node; gives a function that feeds it an RDD."""
    manager = TFManager.start(_KEY, ["input"])
    code = f"import sys; sys.path[:0] = {sys.path!r}; import tf_feed_upstream as t; "
    code += f"t.consume({manager.address!r}, {batch_size})"
    consumer = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield lambda rdd: rdd.foreachPartition(partial(feed, manager.address))
        manager.get_queue("input").put(None)
        consumer.wait()
    finally:
        consumer.kill()
        manager.shutdown()
