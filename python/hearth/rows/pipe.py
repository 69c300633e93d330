"""A bounded queue of items between two threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_BYTES = 16 << 20


class Pipe(Generic[T]):
    """A queue of up to MOST_BYTES, or of a single larger item. One producer, one consumer."""

    def __init__(self, size_of: Callable[[T], int]):
        self._size_of = size_of
        self._changed = threading.Condition()  # guards all fields below
        self._items: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._error: BaseException | None = None
        self._ended = self._closed = False

    def fill(self, source: Iterable[T]) -> None:
        """Puts all items and the end into the pipe. The consumer raises the source's exception."""
        error = None
        try:
            for item in source:
                if not self._put(item):
                    break
        except BaseException as caught:
            error = caught
        with self._changed:
            self._error, self._ended = error, True
            self._changed.notify_all()

    def fill_in_thread(self, source: Iterable[T], name: str) -> None:
        """Runs fill() in a new thread."""
        threading.Thread(target=self.fill, args=(source,), name=name, daemon=True).start()

    def _put(self, item: T) -> bool:
        size = self._size_of(item)
        with self._changed:
            self._changed.wait_for(lambda: self._has_room(size))
            if not self._closed:
                self._items.append((item, size))
                self._bytes += size
                self._changed.notify_all()
            return not self._closed

    def _has_room(self, size: int) -> bool:
        return self._closed or not self._items or self._bytes + size <= MOST_BYTES

    def __iter__(self) -> Iterator[T]:
        """Yields the items until the end or close(). Raises the source's exception."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._ended or self._closed)
                if self._closed:
                    return
                if not self._items:
                    if self._error is not None:
                        raise self._error
                    return
                item, size = self._items.popleft()
                self._bytes -= size
                self._changed.notify_all()
            yield item

    def close(self) -> None:
        """Unblocks the producer and the consumer, because no more items are needed."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()
