"""A loader as what Keras' fit() takes: a keras.utils.PyDataset, and a callback for its position."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import keras

from hearth.data.options import WEIGHT

if TYPE_CHECKING:
    from hearth.data.loader import Loader

_IN_ORDER = (
    "fit() asked for batch {} after batch {}: give fit(shuffle=False), as the loader shuffles the "
    "rows itself, and a position in batches of another order could not be resumed"
)


class KerasDataset(keras.utils.PyDataset):
    """The batches of a loader as (x, y) or (x, y, sample_weight), for fit(dataset, shuffle=False).

    One fit() at a time uses it; its threads may take batches ahead. Sample weights are those of
    uneven="weight". A state_dict() counts batches that fit() has trained on where callback() is
    among its callbacks, else those that it has taken, of which some may be prefetched. An epoch of
    Keras has len() steps; where it begins in the midst of one of the loader, as after
    load_state_dict(), the loader's next epoch follows within it.
    """

    def __init__(self, loader: Loader, x: str | Sequence[str], y: str | Sequence[str] | None):
        """`x`, `y`: names of columns; several make a dict of them."""
        super().__init__(workers=1, use_multiprocessing=False)
        self._loader, self._x, self._y = loader, x, y
        self._length: int | None = None
        self._states: deque[dict[str, Any]] = deque()  # behind batches that are not trained on yet
        self._trained: dict[str, Any] | None = None  # the state behind the last one that is
        self._next = 0  # the batch that fit() is to ask for
        self._begin: dict[str, Any] = {}  # the loader's state before the epoch's first batch
        self._has_trained = False  # in this epoch
        self._counted = False  # callback() counts the batches of this epoch
        self._counts_next = False  # and is to count those of the next one
        self._announced = False  # Keras has said that an epoch begins
        self._peeked = False  # the batches were taken before it said so
        self._batches: Iterator[Any] = iter(())
        self._lock = threading.RLock()  # fit() may look at batches while an older thread takes one
        self._seek(None)

    def __len__(self) -> int:
        if self._length is None:
            self._length = len(self._loader)
        return self._length

    def on_epoch_begin(self) -> None:
        """Keras is about to take the batches of an epoch."""
        self._announced = True

    def on_epoch_end(self) -> None:
        """Keras has taken them, or is about to begin."""
        self._announced = False

    def __getitem__(self, index: int) -> Any:
        with self._lock:
            if index == 0:
                self._begin_epoch()
            elif index != self._next:
                raise ValueError(_IN_ORDER.format(index, self._next - 1))
            try:
                batch = self._chosen(next(self._batches))
            except Exception:  # another fit() is to begin with the batch that could not be made
                self._loader.load_state_dict(self._loader.state_dict())
                self._batches = self._stream()
                raise
            self._states.append(self._loader.state_dict())
            self._next = index + 1
            return batch

    def _begin_epoch(self) -> None:
        """Goes back to the first batch that was not trained on.

        Before its first epoch fit() takes one or two batches to see their types, and then begins
        with them again; an epoch that was interrupted leaves batches that were only taken.
        """
        untrained = bool(self._states) if self._counted else self._next < len(self)
        if self._next > 0 and (self._peeked or untrained):
            self._seek(self._trained if self._has_trained else self._begin)
        self._begin, self._next, self._has_trained = self._loader.state_dict(), 0, False
        self._peeked, self._announced = not self._announced, False
        if not self._peeked:
            self._counted, self._counts_next = self._counts_next, False

    def _seek(self, state: Mapping[str, Any] | None) -> None:
        if state is not None:
            self._loader.load_state_dict(state)
        self._states.clear()
        self._batches = self._stream()
        self._begin, self._next, self._has_trained = self._loader.state_dict(), 0, False
        self._peeked = False

    def _stream(self) -> Iterator[Any]:
        while len(self):
            yield from self._loader

    def callback(self) -> keras.callbacks.Callback:
        """For fit(callbacks=[...]): counts the batches that were trained on."""
        return _Counter(self)

    def state_dict(self) -> dict[str, Any]:
        """See Loader.state_dict()."""
        if self._trained is not None:
            return self._trained
        return self._begin if self._peeked else self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Loader.load_state_dict(); before fit(), or in a callback's on_train_begin()."""
        with self._lock:
            self._seek(state)
            self._trained = None

    def steps_left(self, end: int) -> int:
        """Steps of fit() from state_dict() on until the loader's epoch `end` begins."""
        state = self.state_dict()
        whole = max(0, end - state["epoch"] - 1) * len(self)
        return whole + self._loader.steps_left(state) if state["epoch"] < end else 0

    def _note_trained(self, batches: int) -> None:
        self._has_trained = True
        for _ in range(min(batches, len(self._states))):
            self._trained = self._states.popleft()

    def _chosen(self, batch: dict[str, Any]) -> Any:
        chosen = [self._columns(batch, names) for names in (self._x, self._y) if names is not None]
        return (*chosen, batch[WEIGHT]) if WEIGHT in batch else tuple(chosen)

    @staticmethod
    def _columns(batch: dict[str, Any], names: str | Sequence[str]) -> Any:
        return batch[names] if isinstance(names, str) else {name: batch[name] for name in names}


class _Counter(keras.callbacks.Callback):
    """Tells a dataset of each batch that was trained on."""

    def __init__(self, dataset: KerasDataset):
        super().__init__()
        self._dataset = dataset
        self._trained = 0  # batches of the epoch

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._trained = 0
        self._dataset._counts_next = True

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        # The last batch of several, where the model was compiled with steps_per_execution.
        self._dataset._note_trained(batch + 1 - self._trained)
        self._trained = batch + 1
