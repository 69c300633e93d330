"""Threads that complete the futures of torch.distributed's operations."""

from __future__ import annotations

import threading

import pytest

torch = pytest.importorskip("torch")

from hearth.torch.work import Notifier  # noqa: E402

pytestmark = pytest.mark.torch


def test_a_closed_notifier_has_ended_its_threads():
    """Including the thread of an operation that a callback started."""
    before = threading.active_count()
    notifier, ended = Notifier(), threading.Event()
    outer, nested = torch.futures.Future(), torch.futures.Future()
    called = outer.then(lambda _: notifier.complete_after(nested, ended.wait))
    notifier.complete_after(outer, lambda: None)
    called.wait()
    closes = threading.Thread(target=notifier.close)
    closes.start()
    closes.join(0.2)
    assert closes.is_alive()
    ended.set()
    closes.join()
    assert nested.done() and threading.active_count() == before


def test_a_callback_may_close_its_notifier():
    notifier, future = Notifier(), torch.futures.Future()
    closed = future.then(lambda _: notifier.close())
    notifier.complete_after(future, lambda: None)
    closed.wait()
