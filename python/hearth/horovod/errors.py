"""Exceptions of Horovod's API."""

from __future__ import annotations

from hearth.errors import HearthError


class HorovodInternalError(HearthError):
    """A collective operation failed: a rank was lost, or the ranks' calls disagree.

    An elastic program catches this and restores its last commit. `lost`: whether a rank is gone
    for good, so that the ranks cannot reconnect.
    """

    # TensorFlow's error classes call this constructor without arguments.
    def __init__(self, text: str = "", lost: bool = False):
        super().__init__(text)
        self.lost = lost


class HostsUpdatedInterrupt(RuntimeError):
    """Raised when the set of workers changes: an elastic program restarts without losing its state.

    Attributes:
        skip_sync: whether the state of all workers is already equal.
    """

    def __init__(self, skip_sync: bool = False):
        super().__init__("the workers of this job change")
        self.skip_sync = skip_sync
