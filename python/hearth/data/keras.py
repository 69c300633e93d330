"""A loader as what Keras' fit() takes: a keras.utils.PyDataset, and a callback for its position."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import keras

from hearth.data.options import WEIGHT

if TYPE_CHECKING:
    from hearth.data.loader import Loader

# Keras looks at so many batches before the first epoch, and asks for them again.
_LOOKED_AT = 2
_IN_ORDER = (
    "fit() asked for batch {} after batch {}: give fit(shuffle=False), as the loader shuffles the "
    "rows itself, and a position in batches of another order could not be resumed"
)


class KerasDataset(keras.utils.PyDataset):
    """The batches of a loader as (x, y) or (x, y, sample_weight), for fit(dataset, shuffle=False).

    One thread uses it. Sample weights are those of uneven="weight". A state_dict() counts batches
    that fit() has trained on where callback() is among its callbacks, else those that it has taken,
    of which some may be prefetched.
    """

    def __init__(self, loader: Loader, x: str | Sequence[str], y: str | Sequence[str] | None):
        """`x`, `y`: names of columns; several make a dict of them."""
        super().__init__(workers=1, use_multiprocessing=False)
        self._loader, self._x, self._y = loader, x, y
        self._iterator: Iterator[Any] | None = None
        self._next = 0
        self._kept: dict[int, Any] = {}
        self._length: int | None = None
        self._states: deque[dict[str, Any]] = deque()  # behind batches that are not trained on yet
        self._trained: dict[str, Any] | None = None
        self._counts = False  # a callback counts trained batches

    def __len__(self) -> int:
        """Steps of the epoch, or of what is left of it after load_state_dict()."""
        if self._length is None:
            self._length = self._loader.steps_left()
        return self._length

    def __getitem__(self, index: int) -> Any:
        if index in self._kept:
            return self._kept[index]
        if index != self._next:
            raise ValueError(_IN_ORDER.format(index, self._next - 1))
        if self._iterator is None:
            self._iterator = iter(self._loader)
        batch = self._chosen(next(self._iterator))
        self._states.append(self._loader.state_dict())
        self._next += 1
        if index < _LOOKED_AT:
            self._kept[index] = batch
        else:
            self._kept.clear()
        return batch

    def on_epoch_end(self) -> None:
        """Keras calls it: the next batch is the first one of the next epoch."""
        if self._iterator is not None:
            next(self._iterator, None)  # so that the loader goes on to its next epoch
        self._iterator, self._next, self._length = None, 0, None
        self._kept.clear()

    def callback(self) -> keras.callbacks.Callback:
        """For fit(callbacks=[...]): counts the batches that were trained on."""
        self._counts = True
        return _Counter(self)

    def state_dict(self) -> dict[str, Any]:
        """See Loader.state_dict()."""
        return self._trained if self._counts and self._trained else self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See Loader.load_state_dict(); before fit()."""
        self._loader.load_state_dict(state)
        self._trained, self._length = dict(state), None

    def _note_trained(self) -> None:
        if self._states:
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

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._dataset._note_trained()
