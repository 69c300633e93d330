"""Runs ranks as processes on this machine: hearth.horovod.run() and `python -m hearth.horovod`."""

from __future__ import annotations

import os
import pickle
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hearth.cluster.channel import Channel
from hearth.errors import HearthError
from hearth.horovod.errors import HorovodInternalError
from hearth.horovod.objects import pickler
from hearth.horovod.rendezvous import LAUNCHER

# After a rank has failed, how long the others have to exit by themselves.
_LAST_WAIT_S = 5.0
_FUNCTION = (sys.executable, "-m", "hearth.horovod.function_rank")


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    num_proc: int = 1,
    *,
    np: int | None = None,
    env: Mapping[str, str] | None = None,
    **_: Any,
) -> list[Any]:
    """Runs func(*args, **kwargs) as `num_proc` ranks, each a process on this machine.

    Args:
        func: pickled, with cloudpickle if it is installed.
        np: the older name of `num_proc`.
        env: the ranks' environment; None: this process's.
        Other arguments of Horovod's, such as hosts and use_gloo, are ignored.

    Returns:
        The return values of all ranks, in rank order.

    Raises:
        RuntimeError: a rank failed or was killed; the message has its error. The others are
            terminated.
    """
    program = pickler().dumps((func, tuple(args), dict(kwargs or {})))
    world = num_proc if np is None else np
    ranks = _Ranks(world, _FUNCTION, env, program)
    return [pickle.loads(ranks.results[rank]) for rank in range(world)]


def run_command(np: int, command: Sequence[str]) -> None:
    """Runs a command as `np` ranks. Raises RuntimeError like run()."""
    _Ranks(np, command, None, b"")


@dataclass(frozen=True)
class _Failure:
    text: str
    is_echo: bool  # a consequence of another rank's failure


class _Ranks:
    """The ranks of one run, as processes: starts them, forwards their messages, and waits until all
    have ended."""

    def __init__(
        self, world: int, command: Sequence[str], env: Mapping[str, str] | None, program: bytes
    ):
        from hearth.native._core import new_token

        self.results: dict[int, bytes] = {}
        self._errors: dict[int, _Failure] = {}
        self._ends: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._texts: list[dict[str, Any]] = []
        self._channels: dict[int, Channel] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        key = new_token()
        try:
            for rank in range(world):
                given = {"rank": rank, "world": world, "key": key, "bytes": len(program)}
                self._start(rank, command, env, (given, program))
            self._wait()
        finally:
            for process in self._processes:
                process.kill()
                process.wait()
            for channel in self._channels.values():
                channel.end()

    def _start(
        self, rank: int, command: Sequence[str], env: Mapping[str, str] | None, given: Any
    ) -> None:
        own, theirs = socket.socketpair()
        channel = Channel(own, f"rank {rank}")
        with theirs:
            environment = {**(os.environ if env is None else env), **variables(rank, given[0])}
            environment[LAUNCHER] = str(theirs.fileno())
            environment.setdefault("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
            self._processes.append(
                subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()])
            )
        message, program = given
        channel.send(message, (), program)
        with self._lock:
            self._channels[rank] = channel
            for text in self._texts:
                channel.send(text)
        threading.Thread(target=self._serve, args=(rank, channel), daemon=True).start()

    def _serve(self, rank: int, channel: Channel) -> None:
        try:
            while True:
                message, _ = channel.receive()
                if "error" in message:
                    self._errors[rank] = _Failure(message["error"], message["is_echo"])
                elif "result" in message:
                    self.results[rank] = channel.receive_data(message["result"])
                else:
                    self._pass_on(message)
        except (OSError, EOFError):
            self._ends.put(rank)

    def _pass_on(self, message: dict[str, Any]) -> None:
        with self._lock:
            self._texts.append(message)
            for channel in self._channels.values():
                with suppress(OSError):  # the rank has ended; its thread reports that
                    channel.send(message)

    def _wait(self) -> None:
        failed: dict[int, _Failure] = {}
        with suppress(queue.Empty):
            for _ in self._processes:
                rank = self._ends.get(timeout=_LAST_WAIT_S if failed else None)
                status = self._processes[rank].wait()
                if rank in self._errors or status:
                    ended = _Failure(f"it ended with status {status}", False)
                    failed[rank] = self._errors.get(rank, ended)
        if failed:
            rank = min(failed, key=lambda each: failed[each].is_echo)
            raise HearthError(f"rank {rank} failed: {failed[rank].text}")


def variables(rank: int, given: Mapping[str, Any]) -> dict[str, str]:
    """The environment variables from which programs know their rank before init()."""
    ranks = {"": rank, "LOCAL_": rank, "CROSS_": 0}
    sizes = {"": given["world"], "LOCAL_": given["world"], "CROSS_": 1}
    found = {f"HOROVOD_{kind}RANK": str(number) for kind, number in ranks.items()}
    return found | {f"HOROVOD_{kind}SIZE": str(number) for kind, number in sizes.items()}


def is_echo(error: BaseException) -> bool:
    """Whether an error may be a consequence of another rank's failure."""
    return isinstance(error, HorovodInternalError | ConnectionError)
