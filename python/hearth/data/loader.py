"""Loader: a dataset's rows as minibatches of NumPy arrays, returned by ctx.dataset()."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from hearth.data.batch_maker import BatchMaker, BatchTypes, PreparedBatch
from hearth.data.delivered import note_delivered
from hearth.data.epoch_steps import EpochSteps, Step
from hearth.data.options import LoaderOptions
from hearth.data.position import Pass, Position
from hearth.data.prefetch import Iteration, prefetched
from hearth.data.state import check_state, state_of
from hearth.errors import invalid

if TYPE_CHECKING:
    from hearth.data.dataset import Dataset

_STALE_ITERATION = (
    "this iteration over dataset {!r} (epoch {}) is no longer valid: another one has started, or "
    "set_epoch() or load_state_dict() was called, and a loader has one position; to iterate twice "
    "at the same time open the dataset twice by ctx.dataset()"
)


class Loader:
    """Minibatches of one dataset, with the same number of steps on every rank.

    Used like a PyTorch DataLoader: `for batch in loader`, len(), set_epoch(), state_dict(). A batch
    is {column: array}, or a tuple in the order of `columns`. A loader has one position. Threads of
    the process that created it may share an iteration.

    Attributes:
        repeated_rows: the number of rows repeated so far to give all ranks equally many steps.
        invalid_rows: the number of rows replaced so far because a transform could not decode them.
    """

    _WRONG_PROCESS = (
        "a loader cannot be copied or used in another process, as it counts the rows that it "
        "delivers: use it in the process that called ctx.dataset(), and call ctx.dataset() again "
        "for another loader; map_in='processes' prepares batches in other processes"
    )

    def __init__(
        self,
        dataset: Dataset,
        options: LoaderOptions,
        types: BatchTypes | None = None,
        collate: Callable[[Any], Any] | None = None,
    ):
        """`types`: how batches are represented; None means NumPy arrays. `collate` is applied to
        each batch before options.map.

        Raises:
            ValueError: an option has no effect.
        """
        self._dataset = dataset
        self._options = options
        self._steps = EpochSteps(dataset, options)
        self._maker = BatchMaker(dataset, options, types or BatchTypes(), collate)
        self._position = self._start_of(0)
        self._moving = threading.RLock()  # guards replacing and claiming the position
        self._process = os.getpid()
        self.repeated_rows = 0
        self.invalid_rows = 0

    def __reduce__(self) -> Any:
        """Refuses copies, because a copy's position would not match the delivered rows."""
        raise invalid(self._WRONG_PROCESS)

    @property
    def batch_size(self) -> int:
        """The number of rows per batch; an epoch's last batch may have fewer."""
        return self._options.batch_size

    @property
    def drop_last(self) -> bool:
        """Whether an epoch's last batch is dropped if it has fewer rows than the others."""
        return self._options.drop_last

    @property
    def epoch(self) -> int:
        """The epoch number (from 0) of the running iteration, or of the next one if none runs."""
        return self._position.epoch

    def __len__(self) -> int:
        """The number of an epoch's steps, the same on all ranks; blocks until all rows are counted.

        Raises:
            ClusterError: the cluster failed.
        """
        return self._steps.of_epoch()

    def as_keras_dataset(self, x: str | Sequence[str], y: str | Sequence[str] | None = None) -> Any:
        """A keras.utils.PyDataset of (x, y), for fit(dataset, shuffle=False).

        Args:
            x, y: column names. Several names select a dict of columns.
        """
        from hearth.data.keras import KerasDataset

        return KerasDataset(self, x, y)

    def as_tf_dataset(self) -> Any:
        """A tf.data.Dataset of {column: tensor}; each iteration is the next epoch."""
        from hearth.data.tensorflow import as_tf_dataset

        return as_tf_dataset(self)

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration start this epoch, at its beginning or, if a loaded state is in
        this epoch, at that state.

        Raises:
            ValueError: `epoch` is not a valid epoch number (they count from 0).
        """
        if not hasattr(type(epoch), "__index__") or not 0 <= epoch < 2**63:
            raise invalid(f"set_epoch({epoch!r}): pass an integer of at least 0")
        epoch = operator.index(epoch)
        with self._moving:
            if epoch != self._position.epoch or self._position.started:
                self._move_to(self._start_of(epoch))

    def state_dict(self) -> dict[str, Any]:
        """The position after the last delivered batch, not counting prefetched ones. It is the same
        on all ranks and serializable as JSON.
        """
        return state_of(self._dataset, self._options, self._position)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state_dict(), which may come from a run with another number of ranks.

        With the same number of ranks, the next iteration yields what the other run would have
        yielded next. With another number, it yields each remaining row of the epoch once.

        Raises:
            ValueError: `state` is not a state, or has other rows, another seed or another shuffle.
            ClusterError: the cluster failed.
        """
        check_state(self._dataset, self._options, state)
        self._move_to(self._position_of(state))

    def steps_left(self, state: Mapping[str, Any]) -> int:
        """The number of steps from a state_dict() to the end of its epoch; blocks like len()."""
        return self._steps.left(self._position_of(state))

    def __iter__(self) -> Iterator[Any]:
        """Claims the position at the first batch, so Lightning's unused iterators on a restart do
        not change it. Raises RuntimeError in another process.
        """
        self._check_process()
        return Iteration(self._batches(), self._check_process)

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise invalid(self._WRONG_PROCESS)

    def _position_of(self, state: Mapping[str, Any]) -> Position:
        return Position.of_state(state, self._dataset.plan.owners)

    def _start_of(self, epoch: int) -> Position:
        return Position(epoch, [Pass(self._dataset.plan.owners)])

    def _move_to(self, position: Position) -> None:
        """Sets the position, which ends the iteration that started at the previous position."""
        with self._moving:
            self._position.replaced = True
            self._position = position

    def _claim_position(self) -> Position:
        """Returns the position for an iteration that starts now."""
        with self._moving:
            self._maker.start_processes()  # first: if this fails, the position is unchanged
            if self._position.started:  # the last iteration was abandoned
                self._move_to(self._start_of(self._position.epoch + 1))
            self._position.started = True
            return self._position

    def _batches(self) -> Iterator[Future[PreparedBatch]]:
        """Yields the batches from the position to the end of its epoch, and counts them. A failed
        batch is not counted; its future contains the exception.

        Raises:
            ValueError: the loader's position was replaced.
            ClusterError: the cluster failed.
        """
        position = self._claim_position()

        def prepare(step: Step) -> PreparedBatch:
            return self._maker.make(step, self._steps.rows_after(position, step))

        steps, workers = self._steps.read(position), self._options.workers
        depth = max(self._options.prefetch, workers)
        for future in prefetched(steps, prepare, workers, depth):
            if position.replaced:
                raise invalid(_STALE_ITERATION.format(self._dataset.name, position.epoch))
            if future.exception() is None:
                self._count(position, future.result())
            yield future
        with self._moving:
            if not position.replaced:
                self._move_to(self._start_of(position.epoch + 1))

    def _count(self, position: Position, prepared: PreparedBatch) -> None:
        position.advance(prepared.end)
        self.repeated_rows += prepared.repeated
        self.invalid_rows += prepared.invalid
        note_delivered(prepared.rows)
