"""The node's process: runs the user's main function; a thread accepts feed connections."""

from __future__ import annotations

import ctypes
import gc
import io
import os
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from importlib import import_module
from typing import Any, cast

from hearth.cluster.channel import Channel
from hearth.cluster.node.feed_server import FeedServer
from hearth.cluster.node.reports.program_reports import ProgramReports
from hearth.cluster.node.reports.relay import flush_own_output

_PR_SET_PDEATHSIG = 1
# A message of the rendezvous is at most a megabyte. Only the end of a longer traceback is sent, as
# the end matters most.
_MAX_TRACEBACK = 16384
_MAX_WARNING = 4096
# How long to wait for the report of a lost rank that caused this rank's failure.
_CAUSE_WAIT_S = 10.0


def main() -> None:
    """Runs one node. The command-line arguments are descriptors: of the supervisor's channel, the
    bound port, and the socket for reports."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    port = socket.socket(fileno=int(sys.argv[2]))
    message, _ = channel.receive()
    program = channel.receive_data(message["bytes"])
    sys.path[:] = message["sys_path"]
    # Garbage collection is off until the main function starts: it would take a sixth of the time to
    # import torch.
    gc.disable()
    _import_ahead()
    go, _ = channel.receive()
    os.environ.update(go["environment"])
    reports = ProgramReports(socket.socket(fileno=int(sys.argv[3])))
    server = FeedServer(go["queues"], channel.send, go["datasets"], reports)
    threading.Thread(target=_listen, args=(channel, server), daemon=True).start()
    threading.Thread(target=_forward_warnings, args=(_warnings(), channel), daemon=True).start()
    with suppress(Exception):  # output appears line by line
        cast(io.TextIOWrapper, sys.stdout).reconfigure(line_buffering=True)
    ended = _run(program, go, port, server)
    # Lets objects be collected at exit, because some libraries report objects that are not
    # collected as leaks.
    gc.unfreeze()
    flush_own_output()
    reports.flush()
    channel.send(ended)
    server.close(f"{go['context']['role']}:{go['context']['index']} on host {socket.gethostname()}")


def _import_ahead() -> None:
    """Imports common modules early, while the cluster waits for other nodes, to save time later.
    Imports no framework: the visible GPUs are not known yet."""
    for name in ("pyspark.cloudpickle", "hearth.cluster.node.context"):
        with suppress(Exception):  # _run() imports again, and reports errors
            import_module(name)


def _run(
    program: bytes, go: dict[str, Any], port: socket.socket, server: FeedServer
) -> dict[str, Any]:
    """Calls the main function; returns the report of its end."""
    from hearth.cluster import results
    from hearth.cluster.node.node_manager import NodeManager
    from hearth.native._core import stall_counts
    from hearth.ranks import place
    from hearth.ranks.group import lost_a_rank

    if go["release_port"]:
        port.close()
    try:
        from pyspark import cloudpickle

        main_function, arguments, make_context = cloudpickle.loads(program)
        kept_port = None if go["release_port"] else port
        manager = NodeManager(server)
        context = make_context(mgr=manager, port=kept_port, **go["context"])
        place.offer(context.place())
        if isinstance(arguments, list):
            sys.argv = arguments
        gc.freeze()  # excludes imported modules from garbage collection, as they are never freed
        gc.enable()
        results.give(context, main_function(arguments, context), manager.report_value)
    except SystemExit as end:
        if end.code not in (None, 0):
            return {"result": "error", "error": f"its main function called sys.exit({end.code!r})"}
    except BaseException as error:
        if lost := lost_a_rank():  # report the cause, not this consequence
            server.await_cause(_CAUSE_WAIT_S)
        if stall_counts()[1]:
            server.report({"event": "late"})
        text = traceback.format_exc()[-_MAX_TRACEBACK:]
        why = ""
        if lost and server.ended_before:
            why = (
                f" ({server.ended_before} had ended: all ranks must make the same collective "
                "calls, such as those of DDP, ctx.checkpoint() and ctx.restore())"
            )
        return {"result": "error", "error": f"{type(error).__name__}: {error}{why}\n{text}"}
    return {"result": "ok", "terminated": server.terminated}


def _listen(channel: Channel, server: FeedServer) -> None:
    try:
        while True:
            _handle(*channel.receive(descriptors=1), server)
    except (EOFError, OSError):
        pass  # the supervisor has ended, and with it this node
    except Exception as error:  # continuing would lose messages of the driver
        traceback.print_exc()
        text = f"its feed failed: {type(error).__name__}: {error}"
        with suppress(OSError):
            channel.send({"result": "error", "error": text})
    os._exit(1)


def _warnings() -> int:
    """A pipe that receives the core's warnings, line by line."""
    from hearth.native._core import copy_warnings_to

    lines, written = os.pipe()
    os.set_blocking(written, False)  # logging never blocks on the reader
    copy_warnings_to(written)
    return lines


def _forward_warnings(fd: int, channel: Channel) -> None:
    """Sends warnings to the driver."""
    from hearth.native._core import stall_counts

    rest, reported = b"", 0
    with suppress(OSError):
        while True:
            *lines, rest = (rest + os.read(fd, 65536)).split(b"\n")
            for line in lines:
                text = line.decode(errors="replace")[:_MAX_WARNING]
                before, reported = reported, stall_counts()[0]
                stalled = reported > before
                channel.send({"event": "warning", "text": text, "stalled": stalled})


def _handle(message: dict[str, Any], fds: list[int], server: FeedServer) -> None:
    operation = message["op"]
    if operation.startswith("dataset_"):
        server.datasets.handle(message, fds)
        return
    if operation == "feed":
        if not fds:  # at the descriptor limit; the task sees the connection end
            print("hearth: out of descriptors for a feed's connection", file=sys.stderr)
            return
        server.attach(socket.socket(fileno=fds[0]), message["from_remote"])
        return
    for fd in fds:
        os.close(fd)
    if operation == "claim":
        server.answer(message)
    elif operation == "files":
        server.files.answer(message)
    elif operation == "publish":
        server.store.note(message)
    elif operation == "end":
        server.end()
    elif operation == "fail":
        server.fail(message["reason"])
    elif operation == "no_cause":
        server.no_cause(message["ended"])
    elif operation == "stop_training":
        server.reports.should_stop = True
    elif operation == "replay":
        server.replay(message)
    elif operation == "waits":
        from hearth.cluster.node.data_feed import waited_s

        server.report({"event": "waits", "seconds": waited_s()})


if __name__ == "__main__":
    main()
