"""State that can be restored to its last commit, and the loop that restores it.

The number of ranks does not change while a program runs: if a rank is lost, a cluster with
restart=True starts all ranks again (docs/horovod.md).
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from hearth.horovod import basics
from hearth.horovod.errors import HorovodInternalError, HostsUpdatedInterrupt
from hearth.horovod.objects import broadcast_object
from hearth.horovod.variables import number


class State:
    """Base of states. Subclasses implement save(), restore() and sync()."""

    def __init__(self, **kwargs: Any):
        self._reset_callbacks: list[Callable[[], object]] = []

    def register_reset_callbacks(self, callbacks: list[Callable[[], object]]) -> None:
        """Registers functions to call after the ranks have reconnected, e.g. to adapt the learning
        rate."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Called when the ranks have reconnected."""
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Does nothing: the workers do not change while the program runs."""

    def commit(self) -> None:
        """Saves the state for restore()."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Does nothing: the workers do not change while the program runs."""

    def save(self) -> None:
        """Saves the values in memory."""
        raise NotImplementedError

    def restore(self) -> None:
        """Restores the values of the last save()."""
        raise NotImplementedError

    def sync(self) -> None:
        """Copies rank 0's values to all ranks."""
        raise NotImplementedError

    def reset(self) -> None:
        """Called when the ranks have reconnected; subclasses may override it."""


class ObjectState(State):
    """A state of attributes of any picklable type, such as ObjectState(batch=0, epoch=0).

    `bcast_object`, `get_rank`: functions with Horovod's signatures; None: this package's functions.
    """

    def __init__(
        self,
        bcast_object: Callable[..., Any] | None = None,
        get_rank: Callable[[], int] | None = None,
        **kwargs: Any,
    ):
        super().__init__()
        self._bcast_object = bcast_object or broadcast_object
        self._rank = get_rank or basics.rank
        self._saved_state = kwargs
        self._set(kwargs)

    def save(self) -> None:
        self._saved_state = {name: copy.deepcopy(getattr(self, name)) for name in self._saved_state}

    def restore(self) -> None:
        self._set(copy.deepcopy(self._saved_state))

    def sync(self) -> None:
        if self._saved_state:
            own = {name: getattr(self, name) for name in self._saved_state}
            self._saved_state = self._bcast_object(own)
            # Does not call restore(), because a subclass's restore() would undo its sync().
            self._set(copy.deepcopy(self._saved_state))

    def _set(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            setattr(self, name, value)


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of func(state, ...): on HorovodInternalError the state is restored to its last
    commit, all ranks reconnect, and the function starts again.

    Raises HorovodInternalError if not all ranks reconnect. A lost rank never reconnects; a cluster
    with restart=True then starts all ranks again. HOROVOD_ELASTIC_RESET_LIMIT: limit of retries.
    """

    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Any:
        limit = number("HOROVOD_ELASTIC_RESET_LIMIT", 0, "resets")
        resets, syncs = 0, True
        while True:
            if syncs:
                state.sync()
            try:
                return func(state, *args, **kwargs)
            except HorovodInternalError as error:
                resets, syncs = resets + 1, True
                if 0 < limit < resets or error.lost:
                    raise
                state.restore()
                _reconnect(error)
            except HostsUpdatedInterrupt as update:
                resets, syncs = resets + 1, not update.skip_sync
                if 0 < limit < resets:
                    raise
                _reconnect(update)
            state.on_reset()

    return wrapper


def _reconnect(cause: Exception) -> None:
    basics.shutdown()
    try:
        basics.init()
    except (ConnectionError, TimeoutError) as error:
        raise HorovodInternalError(
            f"not all ranks reconnected after this failure: {cause} ({error})"
        ) from cause
