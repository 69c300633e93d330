"""A node's feeds, from Spark and from files, as PyTorch programs use them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from hearth.cluster import data_feed, file_feed

logger = logging.getLogger(__name__)


class _AsIterableDataset:
    """What the feeds of PyTorch programs can do besides."""

    # Set by in_step(): rows have been taken, or are being taken, that the program has not seen.
    ahead = False

    def as_iterable_dataset(
        self, batch_size: int, columns: Sequence[str] | None = None, *, writable: bool = False
    ) -> Any:
        """A torch.utils.data.IterableDataset of minibatches; one pass over it ends with the feed.

        A minibatch is {column: tensor} for rows of a DataFrame, or a tuple of tensors in the order
        of `columns`; for Python rows it is a tuple of tensors where a row is a tuple, else one
        tensor. Columns of strings and bytes are lists. DataLoader(dataset, batch_size=None) takes
        it, with num_workers=0.

        Tensors of numbers, and of lists of one length, lie in the memory by which the rows came,
        which is not theirs: an operation in place may end the process. They are copies where a
        minibatch spans two Arrow batches, or the column has nulls or booleans.

        Args:
            batch_size: rows of a minibatch; the last one may be smaller.
            columns: which columns to give, as a tuple; None: all, by name.
            writable: copy what must not be written to.

        Raises (while it is iterated):
            RuntimeError: in a worker process of a DataLoader.
            ValueError: a column is not there, or has no tensor type.
            ClusterError: a node of the cluster failed.
        """
        from hearth.torch.datasets import FeedDataset

        return FeedDataset(self, batch_size, columns, writable)


class DataFeed(_AsIterableDataset, data_feed.DataFeed):
    """The rows that Spark brings to this node, in minibatches; and the results back."""

    def batch_results(self, results: Any) -> None:
        """Sends the results of rows, one per row, in their order; a tensor as Python numbers.

        Raises:
            ValueError: there are more results than rows without one.
        """
        super().batch_results(results.tolist() if hasattr(results, "detach") else results)

    def commit(self, rows: int | None = None) -> None:
        """All rows given so far are safe, in a checkpoint, say; see hearth.cluster.

        Without `rows`, does nothing in a step of in_step() for which this node has no rows yet:
        those that it is about to give would count, too.
        """
        if self.ahead and rows is None:
            logger.debug("commit: not now, as rows are on their way that no step has used")
            return
        super().commit(rows)


class FileFeed(_AsIterableDataset, file_feed.FileFeed):
    """The rows of files that a node reads itself."""
