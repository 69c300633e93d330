"""A node's feeds, from Spark and from files, for PyTorch programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hearth.cluster.node import data_feed, file_feed
from hearth.rows.column_results import ColumnResults
from hearth.rows.results import as_array
from hearth.torch.sharding import check_whole

if TYPE_CHECKING:
    from torch.utils.data import IterableDataset


class _AsIterableDataset:
    """A mixin with the methods that feeds have only in PyTorch programs."""

    def as_iterable_dataset(
        self, batch_size: int, columns: Sequence[str] | None = None, *, ragged: Sequence[str] = ()
    ) -> IterableDataset[Any]:
        """A torch.utils.data.IterableDataset of minibatches; one iteration consumes the feed.

        A minibatch is {column: tensor} for rows of a DataFrame, or a tuple of tensors in the order
        of `columns`; for Python rows it is a tuple of tensors if rows are tuples, else one tensor.
        Columns of strings and bytes are lists. DataLoader(dataset, batch_size=None) accepts it,
        with num_workers=0. docs/cluster.md lists the conversion of each column type.

        The caller owns the tensors of a minibatch, and may modify them in place (x.div_(255)).

        Args:
            batch_size: rows of a minibatch; the last one may be smaller.
            columns: names of columns: minibatches are tuples of their tensors; None: minibatches
                are dicts of all columns.
            ragged: columns of lists of different lengths, which become lists of tensors.

        Raises (while it is iterated):
            RuntimeError: in a worker process of a DataLoader; or if a framework (Accelerate,
                transformers.Trainer) would shard the rows again.
            ValueError: a column is missing, or tensors do not support its values.
            ClusterError: a node of the cluster failed.
        """
        from hearth.torch.datasets import FeedDataset

        return FeedDataset(self, batch_size, columns, ragged)

    def _take(self, batch_size: int, arrays: bool = False) -> Any:
        check_whole()
        return super()._take(batch_size, arrays)  # type: ignore[misc]


class DataFeed(_AsIterableDataset, data_feed.DataFeed):
    """A feed that receives rows from Spark in minibatches, and sends results back."""

    def batch_results(self, results: Any) -> None:
        """Like hearth.cluster's batch_results(); a tensor is sent as columns, whose rows are Python
        numbers.

        Raises:
            ValueError: there are more results than rows without a result.
        """
        if hasattr(results, "detach"):
            found = ColumnResults.of(as_array(results), plain=True)
            results = results.tolist() if found is None else found
        super().batch_results(results)


class FileFeed(_AsIterableDataset, file_feed.FileFeed):
    """The rows of files, which the node reads without Spark."""
