"""Training steps in which every rank participates, for minibatches of NumPy arrays."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from hearth.errors import invalid
from hearth.ranks import steps
from hearth.tensorflow import group


def in_step(batches: Iterable[Any], patience_s: float = 0.5, feed: Any = None) -> InStep:
    """Yields (minibatch, weight) equally often on all ranks, until all ranks have run out of rows.

    For model.fit, as the weight of each row:

        def rows():
            for (x, y), weight in in_step(batches):
                yield x, y, np.full(len(y), weight, np.float32)

        model.fit(rows())

    A rank without rows repeats two old rows with weight 0. Any other rank's weight is its share of
    the step's rows times the number of ranks, so that the mean over the ranks is the mean over the
    rows. in_step() uses dedicated connections, so it may run in a thread other than the training's.
    All ranks call it equally often.

    Args:
        batches: NumPy arrays with a first dimension of rows, or tuples, lists or dicts of them, of
            numbers or booleans.
        patience_s: how long to wait for a rank that has just run out of rows.
        feed: the DataFeed of the rows, for InStep.commit() and CheckpointCallback().

    Raises:
        HearthError: before init(). TypeError: a minibatch has another type.
        ConnectionError, TimeoutError: a rank left, or did not call in time; the message names the
            rank.
    """
    return InStep(batches, patience_s, feed)


class InStep(Iterator[tuple[Any, float]]):
    """The iterable returned by in_step(). Only one thread may iterate; any thread may commit."""

    def __init__(self, batches: Iterable[Any], patience_s: float, feed: Any):
        self._feed = feed
        self._came: deque[int] = deque()  # rows that the feed had delivered at each minibatch
        self._last = 0
        self._given: list[int] = []  # rows that the feed had delivered at each step
        self._steps = self._run(batches if feed is None else self._counted(batches), patience_s)

    def __next__(self) -> tuple[Any, float]:
        batch, weight = next(self._steps)
        if self._came and weight > 0:
            self._last = self._came.popleft()
        if self._feed is not None:
            self._given.append(self._last)
        return batch, weight

    @property
    def given(self) -> int:
        """How many minibatches in_step() has yielded; 0 without a feed."""
        return len(self._given)

    def commit(self, steps: int) -> None:
        """Marks the rows of the first `steps` minibatches as safe; a thread that reads ahead, as in
        model.fit, may have fetched later ones.

        Raises ValueError if in_step() has no feed, or has not yielded that many minibatches.
        """
        if self._feed is None:
            raise invalid("commit() needs in_step(feed=...)")
        if steps > len(self._given):
            raise invalid(
                f"commit({steps}): in_step() has yielded only {len(self._given)} minibatches"
            )
        if steps > 0:
            self._feed.commit(self._given[steps - 1])

    def _counted(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            self._came.append(self._feed.taken)
            yield batch

    def _run(self, batches: Iterable[Any], patience_s: float) -> Iterator[tuple[Any, float]]:
        if group.size() == 1:
            for batch in batches:
                yield batch, 1.0
            return
        ranks = group.another("steps")
        try:
            yield from steps.in_step(batches, patience_s, _Arrays(ranks))
        finally:
            ranks.close()


class _Arrays:
    """NumPy's implementation of hearth.ranks.steps.Exchange."""

    def __init__(self, ranks: Any):
        self._ranks = ranks

    def exchange_states(self, own: steps.State) -> list[steps.State]:
        every = np.zeros((self._ranks.world, 3), np.int64)
        every[self._ranks.rank] = own.rows, own.ended, own.has_example
        self._run("all_reduce", every)
        return [steps.State(int(rows), bool(end), bool(has)) for rows, end, has in every]

    def rows(self, batch: Any) -> int:
        return len(_parts(batch)[1][0])

    def two_rows(self, batch: Any) -> Any:
        names, arrays = _parts(batch)
        return steps.whole_of(names, [np.concatenate([a[:1], a[-1:]]) for a in arrays])

    def share(self, example: Any, source: int) -> Any:
        names, arrays = _parts(example) if example is not None else (None, [])
        spec = [[array.dtype.str, list(array.shape)] for array in arrays]
        text = np.frombuffer(json.dumps([names, spec]).encode(), np.uint8).copy()
        length = np.array([len(text)])
        self._run("broadcast", length, peer=source)
        if self._ranks.rank != source:
            text = np.empty(int(length[0]), np.uint8)
        self._run("broadcast", text, peer=source)
        names, spec = json.loads(text.tobytes())
        received = []
        for number, (kind, shape) in enumerate(spec):
            mine = self._ranks.rank == source
            value = np.ascontiguousarray(arrays[number]) if mine else np.empty(shape, kind)
            self._run("broadcast", value.reshape(-1).view(np.uint8), peer=source)
            received.append(value)
        return example if example is not None else steps.whole_of(names, received)

    def _run(self, operation: str, array: np.ndarray, **how: Any) -> None:
        group.run_in(self._ranks, operation, array, **how)


def _parts(batch: Any) -> tuple[Any, list[np.ndarray]]:
    """(structure for whole_of(), arrays)."""
    names, values = steps.parts_of(batch)
    arrays = [np.asarray(value) for value in values]
    for number, array in enumerate(arrays):
        if array.ndim == 0 or array.dtype.kind not in "biuf":
            what = names[number] if isinstance(names, list) else number
            raise TypeError(
                f"in_step() expects minibatches of numeric arrays with a first dimension of rows, "
                f"but part {what!r} is {array.dtype} of shape {array.shape}"
            )
    return names, arrays
