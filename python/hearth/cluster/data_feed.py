"""The rows of a node's feed, as its main function takes them: in minibatches, results back."""

from __future__ import annotations

from typing import Any

from hearth.cluster import feed_rows


class DataFeed:
    """The rows that Spark brings to this node, in minibatches; and the results back.

    One thread uses it. `mgr` is `ctx.mgr`, the node's feeds by name.
    """

    def __init__(
        self, mgr, train_mode=True, qname_in="input", qname_out="output", input_mapping=None
    ):
        """Opens a feed.

        Args:
            mgr: where the feeds are.
            train_mode: False: a minibatch ends with its partition and results go back.
            qname_in: name of the feed.
            qname_out: name of the results' queue, for those who bring one.
            input_mapping: tensor by column: batches become {tensor: values}, the columns taken in
                the order of their names.

        Raises:
            ValueError: there is no feed of that name.
        """
        self.mgr = mgr
        self.train_mode = train_mode
        self.done_feeding = False
        self.queue_in = mgr.get_queue(qname_in)
        self.queue_out = mgr.get_queue(qname_out)
        self.input_tensors = None
        self._columns = None
        if input_mapping is not None:
            self._columns = sorted(input_mapping)
            self.input_tensors = [input_mapping[column] for column in self._columns]
        self._source = self._open()

    def _open(self) -> Any:
        """The source of the rows: something like a FeedSource."""
        return feed_rows.open_source(self.queue_in)

    def next_batch(self, batch_size):
        """Waits for up to `batch_size` rows: a list, or {tensor: list} with an input_mapping.

        The batch is shorter at the end of the feed, perhaps empty, and, unless in train mode, at
        the end of a partition.

        Raises:
            ClusterError: a node of the cluster failed.
        """
        rows = feed_rows.as_rows(self._take(batch_size))
        if self.input_tensors is None:
            return rows
        return {name: [row[i] for row in rows] for i, name in enumerate(self.input_tensors)}

    def next_numpy(self, batch_size: int) -> Any:
        """The same rows as arrays, first dimension rows; None without rows.

        Rows of a DataFrame come as {column: array} (or {tensor: array}), without a copy where
        one Arrow batch holds them all; Python rows come as a tuple of arrays where a row is a
        tuple, else as one array.
        """
        chunks = self._take(batch_size, arrays=True)
        return feed_rows.as_arrays(chunks, self._columns, self.input_tensors)

    def should_stop(self):
        """Whether the feed has ended, as next_batch() has seen."""
        return self.done_feeding

    def batch_results(self, results):
        """Sends the results of rows that next_batch() gave, one per row, in their order.

        Raises:
            ValueError: there are more results than rows without one.
        """
        self._source.put_results(list(results))

    def terminate(self):
        """Ends the feed: the rest of its rows is skipped, and the cluster's train() returns."""
        self.mgr.set("state", "terminating")
        self._source.terminate()
        self.done_feeding = True

    def commit(self) -> None:
        """All rows given so far are safe, in a checkpoint, say.

        Where a cluster with restart=True starts again, every partition that has rows that are not
        safe comes again. Any thread may call it.
        """
        self._source.commit()

    def _take(self, batch_size: int, arrays: bool = False) -> list[Any]:
        if self.done_feeding:
            return []
        chunks = self._source.take(batch_size, self.train_mode, arrays)
        self.done_feeding = self._source.ended
        return chunks
