"""Functions for a node's main function: paths as in Spark, and the rows of its feed."""

from __future__ import annotations

import logging
import socket
from typing import Any, NoReturn, Protocol

from hearth.cluster.node import data_feed, file_feed
from hearth.errors import UnimplementedError
from hearth.files.uri import absolute_uri
from hearth.tensorflowonspark.queue_source import QueueSource

logger = logging.getLogger(__name__)


class _Context(Protocol):
    """The attributes of a main function's context that these functions use."""

    defaultFS: str
    working_dir: str
    tmp_socket: socket.socket | None


def hdfs_path(ctx: _Context, path: str) -> str:
    """`path` as an absolute URI of the cluster's default file system; see absolute_uri()."""
    return absolute_uri(path, ctx.defaultFS, ctx.working_dir)


def start_cluster_server(ctx: _Context, num_gpus: int = 1, rdma: bool = False) -> NoReturn:
    """TensorFlow 1 only. Raises NotImplementedError."""
    raise UnimplementedError(
        "DEPRECATED: TensorFlow 2 has no tf.train.Server of this kind: use a tf.distribute strategy"
    )


def export_saved_model(sess: Any, export_dir: str, tag_set: Any, signatures: Any) -> NoReturn:
    """TensorFlow 1 only. Raises NotImplementedError."""
    raise UnimplementedError(
        "DEPRECATED: TensorFlow 2 has no sessions: use compat.export_saved_model(model, dir)"
    )


def next_batch(mgr: Any, batch_size: int, qname: str = "input") -> NoReturn:
    """Raises NotImplementedError: use TFNode.DataFeed."""
    raise UnimplementedError("DEPRECATED: use ctx.get_data_feed().next_batch()")


def batch_results(mgr: Any, results: Any, qname: str = "output") -> NoReturn:
    """Raises NotImplementedError: use TFNode.DataFeed."""
    raise UnimplementedError("DEPRECATED: use ctx.get_data_feed().batch_results()")


def terminate(mgr: Any, qname: str = "input") -> NoReturn:
    """Raises NotImplementedError: use TFNode.DataFeed."""
    raise UnimplementedError("DEPRECATED: use ctx.get_data_feed().terminate()")


def release_port(ctx: _Context) -> None:
    """Frees the port reserved for this node's server, if release_port=False kept it."""
    if ctx.tmp_socket is not None:
        ctx.tmp_socket.close()
        ctx.tmp_socket = None
    else:
        logger.warning("release_port: this node's port was released before its main function ran")


class _AsDataset:
    """A mixin with the methods that feeds have only in TensorFlow programs."""

    def as_dataset(self, batch_size: int, output_signature: Any = None) -> Any:
        """A tf.data.Dataset of minibatches in the form of next_numpy().

        Args:
            batch_size: rows of a minibatch; the last one may be smaller.
            output_signature: signature of a minibatch; None: waits for the first minibatch, and
                infers the signature from it.
        """
        from hearth.tensorflowonspark import datasets

        return datasets.as_dataset(self, batch_size, output_signature)


class DataFeed(_AsDataset, data_feed.DataFeed):
    """The feed of a node, or of a TFManager whose queues the program fills itself."""

    def _open(self) -> Any:
        from hearth.native._core import FeedQueue

        if self.queue_in is None or isinstance(self.queue_in, FeedQueue):
            return super()._open()
        return QueueSource(self.queue_in, self.queue_out)


class FileFeed(_AsDataset, file_feed.FileFeed):
    """The rows of files, which a node reads without Spark."""
