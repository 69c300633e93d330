"""What a node's main function uses: paths as Spark names them, and the rows of its feed."""

from __future__ import annotations

import getpass
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

logger = logging.getLogger(__name__)

_KEPT_SCHEMES = (
    "adl://",
    "file://",
    "hdfs://",
    "oss://",
    "s3://",
    "s3a://",
    "s3n://",
    "swift://",
    "viewfs://",
    "wasb://",
)


def hdfs_path(ctx, path):
    """`path` as an absolute URI of the cluster's default file system.

    A path with a scheme stays as it is; "/x" is taken from the default file system's root, "x" from
    the user's home there, or from the working directory where the file system is the local one.
    """
    if any(path.startswith(scheme) for scheme in _KEPT_SCHEMES):
        return path
    if path.startswith("/"):
        return ctx.defaultFS + path
    if ctx.defaultFS.startswith(("hdfs://", "viewfs://")):
        return f"{ctx.defaultFS}/user/{getpass.getuser()}/{path}"
    if ctx.defaultFS.startswith("file://"):
        return f"{ctx.defaultFS}/{ctx.working_dir.lstrip('/')}/{path}"
    logger.warning("unknown scheme %s with relative path: %s", ctx.defaultFS, path)
    return f"{ctx.defaultFS}/{path}"


def start_cluster_server(ctx, num_gpus=1, rdma=False):
    """TensorFlow 1 only. Raises NotImplementedError."""
    raise NotImplementedError(
        "DEPRECATED: TensorFlow 2 has no tf.train.Server of this kind: use a tf.distribute strategy"
    )


def export_saved_model(sess, export_dir, tag_set, signatures):
    """TensorFlow 1 only. Raises NotImplementedError."""
    raise NotImplementedError(
        "DEPRECATED: TensorFlow 2 has no sessions: use compat.export_saved_model(model, dir)"
    )


def next_batch(mgr, batch_size, qname="input"):
    """Raises NotImplementedError: use TFNode.DataFeed."""
    raise NotImplementedError("DEPRECATED: use ctx.get_data_feed().next_batch()")


def batch_results(mgr, results, qname="output"):
    """Raises NotImplementedError: use TFNode.DataFeed."""
    raise NotImplementedError("DEPRECATED: use ctx.get_data_feed().batch_results()")


def terminate(mgr, qname="input"):
    """Raises NotImplementedError: use TFNode.DataFeed."""
    raise NotImplementedError("DEPRECATED: use ctx.get_data_feed().terminate()")


def release_port(ctx):
    """Frees the port that was kept for this node's server, where release_port=False kept it."""
    if ctx.tmp_socket is not None:
        ctx.tmp_socket.close()
        ctx.tmp_socket = None
    else:
        logger.warning("release_port: this node's port was released before its main function ran")


class DataFeed:
    """The rows that Spark brings to this node, in minibatches; and the results back.

    One thread uses it. `mgr` is `ctx.mgr`, or what TFManager.start() gave.
    """

    def __init__(
        self, mgr, train_mode=True, qname_in="input", qname_out="output", input_mapping=None
    ):
        """Opens a feed.

        Args:
            mgr: where the queues are.
            train_mode: False: a minibatch ends with its partition and results go back.
            qname_in: name of the feed.
            qname_out: name of the results' queue; used with a TFManager only.
            input_mapping: tensor by column: batches become {tensor: values}, the columns taken in
                the order of their names.
        """
        from hearth.tensorflowonspark import feed_rows

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
        self._source = feed_rows.open_source(mgr, self.queue_in, self.queue_out)

    def next_batch(self, batch_size):
        """Waits for up to `batch_size` rows: a list, or {tensor: list} with an input_mapping.

        The batch is shorter at the end of the feed, perhaps empty, and, unless in train mode, at
        the end of a partition.

        Raises:
            ClusterError: a node of the cluster failed.
        """
        from hearth.tensorflowonspark import feed_rows

        rows = feed_rows.as_rows(self._take(batch_size))
        if self.input_tensors is None:
            return rows
        return {name: [row[i] for row in rows] for i, name in enumerate(self.input_tensors)}

    def next_numpy(self, batch_size: int) -> Any:
        """The same rows as arrays, first dimension rows.

        Rows of a DataFrame come as {column: array} (or {tensor: array}), without a copy where
        one Arrow batch holds them all; Python rows come as a tuple of arrays where a row is a
        tuple, else as one array.
        """
        from hearth.tensorflowonspark import feed_rows

        chunks = self._take(batch_size, arrays=True)
        return feed_rows.as_arrays(chunks, self._columns, self.input_tensors)

    def as_dataset(self, batch_size: int, output_signature: Any = None) -> Any:
        """A tf.data.Dataset of minibatches, each as next_numpy() gives it.

        Args:
            batch_size: rows of a minibatch; the last one may be smaller.
            output_signature: of a minibatch; None: taken from the first one, which is waited for.
        """
        from hearth.tensorflowonspark import feed_rows

        return feed_rows.as_dataset(self, batch_size, output_signature)

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
        """Ends the feed: the rest of its rows is skipped, and `train()` returns."""
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


if TYPE_CHECKING:
    Arrays = dict[str, np.ndarray] | tuple[np.ndarray, ...] | np.ndarray
