"""Adapts a loader to Keras' fit(): a keras.utils.PyDataset, and a callback for its position."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras

from hearth.data.batches import Batches
from hearth.data.options import WEIGHT
from hearth.errors import invalid

_IN_ORDER = (
    "fit() requested batch {} after batch {}: use fit(shuffle=False), as the loader shuffles the "
    "rows itself, and a position in reordered batches cannot be resumed"
)


class KerasDataset(keras.utils.PyDataset):
    """The batches of a loader as (x, y) or (x, y, sample_weight), for fit(dataset, shuffle=False).

    Only one fit() at a time may use this dataset; fit()'s threads may prefetch batches. Sample
    weights come from uneven="weight". If callback() is among fit()'s callbacks, state_dict() counts
    the batches that were trained on; otherwise it counts the fetched batches, of which some may
    only be prefetched. A Keras epoch has len() steps. If it starts in the middle of a loader's
    epoch, as after load_state_dict(), it continues into the loader's next epoch.
    """

    def __init__(self, loader: Batches, x: str | Sequence[str], y: str | Sequence[str] | None):
        """`x`, `y`: column names. Several names select a dict of columns."""
        super().__init__(workers=1, use_multiprocessing=False)
        self._loader, self._x, self._y = loader, x, y
        self._length: int | None = None
        self._states: deque[dict[str, Any]] = deque()  # states after batches not yet trained on
        self._trained: dict[str, Any] | None = None  # the state after the last trained batch
        self._next = 0  # index of the batch that fit() requests next
        self._begin: dict[str, Any] = {}  # the loader's state before the epoch's first batch
        self._has_trained = False  # whether a batch was trained on in this epoch
        self._counted = False  # whether callback() counts this epoch's batches
        self._counts_next = False  # whether callback() counts the next epoch's
        self._announced = False  # whether Keras called on_epoch_begin()
        self._peeked = False  # whether batches were fetched before on_epoch_begin()
        self._batches: Iterator[Any] = iter(())
        self._lock = threading.RLock()  # a thread of an earlier fit() may still fetch batches
        self._seek(None)

    def __len__(self) -> int:
        if self._length is None:
            self._length = len(self._loader)
        return self._length

    def on_epoch_begin(self) -> None:
        """Called before Keras fetches the batches of an epoch."""
        self._announced = True

    def on_epoch_end(self) -> None:
        """Called when Keras has fetched an epoch's batches, and before it starts an epoch."""
        self._announced = False

    def __getitem__(self, index: int) -> Any:
        with self._lock:
            if index == 0:
                self._begin_epoch()
            elif index != self._next:
                raise invalid(_IN_ORDER.format(index, self._next - 1))
            try:
                batch = self._chosen(next(self._batches))
            except Exception:  # the next fit() starts with the failed batch
                self._loader.load_state_dict(self._loader.state_dict())
                self._batches = self._stream()
                raise
            self._states.append(self._loader.state_dict())
            self._next = index + 1
            return batch

    def _begin_epoch(self) -> None:
        """Rewinds to the first batch that was not trained on, if later ones were fetched.

        Before its first epoch fit() fetches one or two batches to inspect their types, and then
        requests them again. An interrupted epoch may have fetched batches that were not trained on.
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
        """A callback for fit(callbacks=[...]) that counts the batches that were trained on."""
        return _Counter(self)

    def state_dict(self) -> dict[str, Any]:
        """The loader's position after the last trained batch."""
        if self._trained is not None:
            return self._trained
        return self._begin if self._peeked else self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state_dict(); call it before fit() or in on_train_begin()."""
        with self._lock:
            self._seek(state)
            self._trained = None

    def steps_left(self, end: int) -> int:
        """The number of fit()'s steps from state_dict() to the start of the loader's epoch
        `end`."""
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
    """A Keras callback that reports each trained batch to a KerasDataset."""

    def __init__(self, dataset: KerasDataset):
        super().__init__()
        self._dataset = dataset
        self._trained = 0  # batches in this epoch

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._trained = 0
        self._dataset._counts_next = True

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        # With steps_per_execution, `batch` is the last of several batches.
        self._dataset._note_trained(batch + 1 - self._trained)
        self._trained = batch + 1
