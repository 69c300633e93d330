"""Loader: a dataset's rows as minibatches of NumPy arrays, returned by ctx.dataset()."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hearth.data.arrays import batch_arrays
from hearth.data.delivered import note_delivered
from hearth.data.map_processes import MapProcesses
from hearth.data.options import WEIGHT, LoaderOptions, batch_maker
from hearth.data.position import (
    VERSION,
    Pass,
    Position,
    check_partitions,
    check_same,
    check_state,
    pass_seed,
    remaining,
)
from hearth.data.prefetch import Iteration, prefetched
from hearth.data.steps import PreparedBatch, Repeated, Step
from hearth.errors import HearthError, invalid

if TYPE_CHECKING:
    from hearth.data.dataset import Dataset

# Rows after a batch that may replace those of a batch without decodable rows.
_SPARE_ROWS, _SPARE_AT_ONCE = 1024, 16
_STALE_ITERATION = (
    "this iteration over dataset {!r} (epoch {}) is no longer valid: another one has started, or "
    "set_epoch() or load_state_dict() was called, and a loader has one position; to iterate twice "
    "at the same time open the dataset twice by ctx.dataset()"
)


class Loader:
    """Minibatches of one dataset, the same number of steps on every rank.

    Used like a PyTorch DataLoader: `for batch in loader`, len(), set_epoch(), state_dict(). A batch
    is {column: array}, or a tuple in the order of `columns`. A loader has one position; threads of
    the process that made it may share an iteration.

    Attributes:
        epoch: the number of the epoch of the next, or running, iteration.
        repeated_rows: rows repeated so far, so that all ranks make the same number of steps.
        invalid_rows: rows so far that a transform could not decode, and that were replaced.
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
        collate: Callable[[Any], Any] | None = None,
    ):
        """`collate`: applied to each batch before options.map.

        Raises:
            ValueError: an option has no effect.
        """
        self._dataset = dataset
        self._options = options
        self._user_function = batch_maker(collate, options.map)
        if options.map_in == "processes" and self._user_function is None:
            raise invalid("map_in is 'processes', but map is not set: set it")
        self._position = Position(0, [Pass(dataset.plan.owners)])
        self._fresh = True  # the next iteration starts at the position
        self._beginning = threading.Lock()
        self._process = os.getpid()
        self.repeated_rows = 0
        self.invalid_rows = 0

    def __reduce__(self) -> Any:
        """Refuses copies: each would have a position that does not match the delivered rows."""
        raise invalid(self._WRONG_PROCESS)

    @property
    def batch_size(self) -> int:
        """Rows of a batch; the last one of an epoch may have fewer."""
        return self._options.batch_size

    @property
    def drop_last(self) -> bool:
        """Whether an epoch's last batch is dropped if it is smaller."""
        return self._options.drop_last

    @property
    def epoch(self) -> int:
        """The current epoch, from 0."""
        return self._position.epoch

    def __len__(self) -> int:
        """Steps of a complete epoch, the same on all ranks; waits until all rows are counted.

        Raises:
            ClusterError: the cluster failed.
        """
        return self._steps(self._target(self._row_counts()))

    def as_keras_dataset(self, x: str | Sequence[str], y: str | Sequence[str] | None = None) -> Any:
        """A keras.utils.PyDataset of (x, y), for fit(dataset, shuffle=False).

        Args:
            x, y: column names; several make a dict.
        """
        from hearth.data.keras import KerasDataset

        return KerasDataset(self, x, y)

    def as_tf_dataset(self) -> Any:
        """A tf.data.Dataset of {column: tensor}; each iteration is the next epoch."""
        from hearth.data.tensorflow import as_tf_dataset

        return as_tf_dataset(self)

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration start this epoch, from the beginning, or from a loaded state in
        the middle of it.

        Raises:
            ValueError: not a valid epoch number; they count from 0.
        """
        if not hasattr(type(epoch), "__index__") or not 0 <= epoch < 2**63:
            raise invalid(f"set_epoch({epoch!r}): epochs are integers that count from 0")
        epoch = operator.index(epoch)
        if epoch != self._position.epoch or not self._fresh:
            self._begin_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The position after the last delivered batch, the same on all ranks and serializable as
        JSON. Prefetched batches do not count."""
        return {
            "version": VERSION,
            "dataset": self._dataset.name,
            "identity": self._dataset.plan.identity,
            "partitions": self._dataset.known_partitions(),
            "seed": self._options.seed,
            "shuffle": self._options.mode,
            **self._position.state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state_dict(), also of a run with another number of ranks.

        With the same number of ranks the next iteration yields what the other run would have
        yielded next; with another number, each remaining row of the epoch once.

        Raises:
            ValueError: not a state, or a state of other rows, another seed or shuffle.
            ClusterError: the cluster failed.
        """
        self._check_state(state)
        self._position, self._fresh = self._position_of(state), True

    def steps_left(self, state: Mapping[str, Any]) -> int:
        """Steps of these ranks until the end of the epoch of a state_dict(); waits like len()."""
        position = self._position_of(state)
        _, counts = self._open(position)
        return self._steps(max(0, self._target(counts()) - position.passes[-1].taken))

    def _position_of(self, state: Mapping[str, Any]) -> Position:
        """The position at which these ranks resume from the state."""
        position = Position.of_state(dict(state))
        owners = self._dataset.plan.owners
        if position.passes[-1].owners != owners:
            if all(done.taken == 0 for done in position.passes):
                position.passes.clear()
            position.passes.append(Pass(owners))
        return position

    def _check_state(self, state: Mapping[str, Any]) -> None:
        name, options = self._dataset.name, self._options
        check_state(name, state)
        for key, value in (("seed", options.seed), ("shuffle", options.mode)):
            if state[key] != value:
                raise invalid(
                    f"the state of dataset {name!r} was saved with {key} {state[key]!r}, but the "
                    f"loader has {value!r}: use the same, as it determines the order of rows"
                )
        known, identity = state["partitions"], self._dataset.plan.identity
        hashed = known is not None and all(entry and entry[1] for entry in known)
        try:
            if known is not None:
                check_same(name, known, *self._dataset.totals())
            check_partitions(name, state, len(self._dataset.plan.owners))
            if not hashed and state["identity"] != identity:
                raise invalid(
                    f"dataset {name!r} has changed since its state was saved: its files or columns "
                    "differ; provide the same rows, or start the loader from its beginning"
                )
        except ValueError as error:
            if state["identity"] == identity:
                raise
            raise invalid(f"{error} (it was {state['identity']}, now {identity})") from error

    def _begin_epoch(self, epoch: int) -> None:
        self._position = Position(epoch, [Pass(self._dataset.plan.owners)])
        self._fresh = True

    def __iter__(self) -> Iterator[Any]:
        """Starts at its first batch: unused iterators do not change the position, as Lightning
        creates several on a restart. Raises RuntimeError in another process."""
        self._check_process()
        return Iteration(self._batches(), self._check_process)

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise invalid(self._WRONG_PROCESS)

    def _batches(self) -> Iterator[Any]:
        """Yields the batches of an iteration, and for a failed batch its exception, for __next__ to
        raise. Raises once another iteration or load_state_dict() has replaced the position."""
        with self._beginning:
            if not self._fresh:  # an iteration was abandoned
                self._begin_epoch(self._position.epoch + 1)
            self._fresh, position = False, self._position
        options = self._options
        steps = self._guarded(self._epoch_batches(position))
        prepare = partial(self._prepare, position, self._run_function)
        depth = max(options.prefetch, options.workers)
        for future in prefetched(steps, prepare, options.workers, depth):
            if position is not self._position:
                raise invalid(_STALE_ITERATION.format(self._dataset.name, position.epoch))
            if (error := future.exception()) is not None:
                yield error
                continue
            prepared = future.result()
            position.passes[-1] = Pass(position.passes[-1].owners, prepared.last)
            self.repeated_rows += prepared.repeated
            self.invalid_rows += prepared.invalid
            note_delivered(prepared.rows)
            yield prepared.batch
        if position is self._position:
            self._begin_epoch(position.epoch + 1)

    def _guarded(self, batches: Iterator[Step]) -> Iterator[Step]:
        """Raises the cluster's failure instead of the core's error that follows from it."""
        try:
            yield from batches
        except HearthError:
            self._dataset.check()
            raise

    def _epoch_batches(self, position: Position) -> Iterator[Step]:
        """The remaining batches of an epoch."""
        options, size = self._options, self._options.batch_size
        reader, counts = self._open(position)
        target = self._target(counts()) if options.uneven == "drop" else None
        at = position.passes[-1].taken
        while True:
            count = size if target is None else min(size, target - at)
            rows = reader.take(at, count, False) if count > 0 else None
            unrepeated = 0 if rows is None else rows.count
            if unrepeated < count and target is None:  # the rank has no more rows
                target = self._target(counts())
                count = min(size, target - at)
            if count <= 0 or (count < size and options.drop_last):
                return
            if unrepeated < count:
                rows = reader.take(at, count, True)
            at += count
            yield Step(rows, unrepeated, at)

    def _open(self, position: Position) -> tuple[Any, Callable[[], list[int]]]:
        """The core's reader of the last pass, and a function that counts each rank's rows in it."""
        plan, options = self._dataset.plan, self._options
        finished = position.passes[:-1]
        reader = self._dataset.reader(pass_seed(options.seed, 0), options.mode)
        if not finished:
            reader.start(position.epoch)
            return reader, self._row_counts
        totals, _ = self._dataset.totals()
        left = remaining(finished, totals, options.seed, position.epoch, options.mode)
        here = np.concatenate([left[p] for p in plan.owned] or [np.zeros(0, bool)])
        counts = self._by_rank(int(rows.sum()) for rows in left)
        if not here.any():
            reader.start(position.epoch)
            return Repeated(reader), lambda: counts
        order_seed = pass_seed(options.seed, len(finished))
        reader.start(position.epoch, np.flatnonzero(here), order_seed)
        return reader, lambda: counts

    def _row_counts(self) -> list[int]:
        """Rows of each rank; waits until all are counted."""
        totals, _ = self._dataset.totals()
        return self._by_rank(totals)

    def _by_rank(self, rows: Iterable[int]) -> list[int]:
        """Sums a number per partition over the partitions of each rank."""
        counts = [0] * self._dataset.plan.world
        for owner, number in zip(self._dataset.plan.owners, rows, strict=True):
            counts[owner] += number
        return counts

    def _target(self, counts: Sequence[int]) -> int:
        """Rows that each rank delivers in an epoch."""
        if self._options.uneven == "drop":
            return min(counts)
        rows = self._row_counts()
        if max(counts) > 0 and min(rows) == 0:
            rank = rows.index(0)
            raise invalid(
                f"dataset {self._dataset.name!r} has {sum(rows)} rows for {len(rows)} ranks, "
                f"of which rank {rank} has none to repeat: use fewer ranks, or uneven='drop'"
            )
        return max(counts)

    def _steps(self, rows: int) -> int:
        size = self._options.batch_size
        return rows // size if self._options.drop_last else -(-rows // size)

    def _prepare(
        self, position: Position, function: Callable[[Any, Any], Any] | None, batch: Step
    ) -> PreparedBatch:
        """A batch of the iteration with `position`. Thread-safe."""
        options, rows = self._options, batch.rows
        spare = self._spare(position, batch.last)
        arrays = batch_arrays(rows, self._names, options.ragged, options.transforms, spare)
        values = dict(arrays.values)
        if options.uneven == "weight":
            weights = np.ones(rows.count, np.float32)
            weights[batch.unrepeated :] = 0
            weights[arrays.invalid_index] = 0
            values[WEIGHT] = weights
        prepared = self._as_batch(values, options.columns is not None)
        if function is not None:
            try:
                prepared = function(prepared, rows.ids())
            except Exception as error:
                first, epoch = batch.last - rows.count, position.epoch
                where = (
                    f"in the map of dataset {self._dataset.name!r}, called on rows {first} to "
                    f"{batch.last - 1} of epoch {epoch} of this rank"
                )
                if isinstance(error, StopIteration):  # it would end the program's loop silently
                    raise invalid(f"StopIteration was raised {where}") from error
                error.add_note(where)
                raise
        prepared = self._to_framework(prepared)
        repeated = rows.count - batch.unrepeated
        return PreparedBatch(prepared, batch.last, rows.count, repeated, arrays.invalid)

    @cached_property
    def _run_function(self) -> Callable[[Any, Any], Any] | None:
        """Calls the user's functions with (batch, seeds of its rows), also in worker processes."""
        if self._user_function is None or self._options.map_in == "threads":
            return self._user_function
        return MapProcesses(self._user_function, self._options.workers, self._dataset.name).call

    def _spare(self, position: Position, at: int) -> Iterator[Any]:
        """The rows after a batch, up to a limit, read on demand."""
        reader, _ = self._open(position)
        for first in range(at, at + _SPARE_ROWS, _SPARE_AT_ONCE):
            yield reader.take(first, _SPARE_AT_ONCE, True)

    @cached_property
    def _names(self) -> Sequence[str]:
        """The columns of a batch.

        Raises:
            ValueError: an option names a missing column, or a column has the name of the weights.
        """
        options, name = self._options, self._dataset.name
        names = options.columns or self._dataset.columns()
        for option, named in (("ragged", options.ragged), ("transforms", options.transforms)):
            if missing := sorted(set(named).difference(names)):
                raise invalid(
                    f"{option} names {', '.join(missing)}, but the batches of dataset {name!r} "
                    f"have the columns {', '.join(names)}"
                )
        if options.uneven == "weight" and WEIGHT in names:
            raise invalid(
                f"dataset {name!r} has a column {WEIGHT}, which uneven='weight' adds: rename it in "
                "Spark, or select other `columns`"
            )
        return names

    def _as_batch(self, values: dict[str, Any], as_tuple: bool) -> Any:
        """The batch in the framework's types."""
        return tuple(values.values()) if as_tuple else values

    def _to_framework(self, batch: Any) -> Any:
        """The batch for the program, from the output of map."""
        return batch
