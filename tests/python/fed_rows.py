"""A node's feed in this process; tests write what its feed tasks would write."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from hearth.native._core import FeedLink, FeedQueue, Pieces, RingReader, RingWriter

from hearth.torch.feeds import DataFeed

RING_BYTES = 1 << 20


class FedRows:
    """A node's queue of partitions, and the program's feed that reads it."""

    def __init__(self, folder: Any):
        self.queue = FeedQueue(lambda event: None, lambda: str(folder))
        self._rings: list[Any] = []

    def feed(self, **options: Any) -> DataFeed:
        return DataFeed(SimpleNamespace(get_queue={"input": self.queue}.get), **options)

    def partition(self, batches: Iterable[Any], *, feed: str = "a", keep: bool = False) -> None:
        """Feeds a partition of record batches or pickled rows; blocks while the ring is full."""
        batches = list(batches)
        pickled = any(isinstance(batch, Pieces) for batch in batches)
        rows, results = RingWriter(RING_BYTES), RingReader(RING_BYTES)
        fds = tuple(map(os.dup, rows.fds())), tuple(map(os.dup, results.fds()))
        link = FeedLink(*fds, False, tell=lambda message: None)
        message = {"op": "partition", "feed": feed, "index": len(self._rings), "queue": "input"}
        message |= {"mode": "train", "keep": keep, "fenced": False, "batched": True}
        message |= {"format": "pickle" if pickled else "arrow"}
        self.queue.announce(link, json.dumps(message))
        self._rings.append((rows, results))
        try:
            for batch in batches:
                assert rows.write(batch, 60)
            rows.flush(60)
        except BaseException as error:
            self.queue.fail(str(error))
            raise
