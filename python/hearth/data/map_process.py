"""A worker process of a loader: calls the program's map function on batches.

The process ends when the loader is dropped, or when the program ends for any reason.
"""

from __future__ import annotations

import os
import pickle
import random
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from hearth.data.shared_values import load, store
from hearth.native._core import MessageChannel


def main() -> None:
    """Serves one loader; arguments: the channel's descriptor, and the program's process id."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program handles Ctrl-C
    with suppress(AttributeError):  # show output line by line
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    channel = MessageChannel(int(sys.argv[1]), "the program")
    arguments = channel.fileno(), int(sys.argv[2])
    threading.Thread(target=_end_with_program, args=arguments, daemon=True).start()
    with suppress(OSError):  # the program has ended
        message, _ = channel.receive(None) or ({"bytes": 0}, [])
        function = _loaded(channel.receive_data(message["bytes"]))
        while (received := channel.receive(None)) is not None:
            message, (fd,) = received
            _answer(channel, function, fd, message["sizes"])


def _answer(
    channel: MessageChannel, function: Callable[[Any, Any], Any], fd: int, sizes: list[int]
) -> None:
    try:
        batch, seeds = load(fd, sizes)
        _seed_global_numbers(int(seeds[0]))
        failed, (fd, sizes) = False, store(function(batch, seeds))
    except BaseException as error:
        failed, (fd, sizes) = True, store(_carried(error))
    try:
        channel.send({"failed": failed, "sizes": sizes}, [fd], b"")
    finally:
        os.close(fd)


def _loaded(pickled: bytes) -> Callable[[Any, Any], Any]:
    """Unpickles the function; if that fails, returns a function that raises the error."""
    try:
        return pickle.loads(pickled)
    except Exception as error:
        failure = error

    def fails(batch: Any, seeds: Any) -> Any:
        raise failure

    return fails


def _seed_global_numbers(seed: int) -> None:
    """Seeds the global random generators from the rows' seeds, for the map function."""
    random.seed(seed)
    np.random.seed([seed & 0xFFFFFFFF, seed >> 32])
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)


def _carried(error: BaseException) -> tuple[bytes, str]:
    """The pickled error (a RuntimeError if its class cannot be pickled) and its traceback."""
    text = "".join(traceback.format_exception(error))
    from pyspark import cloudpickle

    try:
        pickled = cloudpickle.dumps(error.with_traceback(None))
        pickle.loads(pickled)
    except Exception:
        pickled = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return pickled, text


def _end_with_program(connection: int, program: int) -> None:
    """Ends this process when the connection is closed or the program has ended. The connection
    alone is not enough, because the program's forked children may keep it open.
    """
    ends = select.poll()
    ends.register(connection, select.POLLRDHUP)
    with suppress(OSError):
        ends.register(os.pidfd_open(program), select.POLLIN)
        if os.getppid() == program:
            ends.poll()
    os._exit(0)


if __name__ == "__main__":
    main()
