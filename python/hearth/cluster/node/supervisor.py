"""The parent process of a node's program.

It starts the program in a child process, joins the rendezvous, lets the main function start once
all nodes have joined, and passes feed connections to the program. It reports the program's end to
the driver and feed tasks, even if the program crashes.
"""

from __future__ import annotations

import hmac
import json
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any

from hearth.cluster import roles
from hearth.cluster.channel import Channel, feed_terms
from hearth.cluster.errors import returned
from hearth.cluster.node import tensorboard
from hearth.cluster.node.datasets.held import HeldDatasets
from hearth.cluster.node.feed_listener import FeedListener
from hearth.cluster.node.placement import visible_gpus
from hearth.cluster.node.reports.relay import Relay
from hearth.cluster.node.supervisor_messages import Kind, Message
from hearth.files.forwarded_tokens import ForwardedTokens, token_scope
from hearth.files.hadoop import add_hadoop_classpath
from hearth.spark.addresses import address_towards
from hearth.spark.ports import FEED, NODE, first_free

# Time for the program's process to exit after its main function has returned.
_EXIT_TIMEOUT_S = 10.0
_KILL_TIMEOUT_S = 3.0
_MESSAGE_WAIT_S = 60.0
_NO_SHARES = (
    "remote files are shared among the nodes of a cluster only, and this node runs alone: read "
    "them by TensorFlow or pyarrow"
)


class Supervisor:
    """The supervisor of one node. All events go through one inbox, handled in one thread."""

    def __init__(self, job: dict[str, Any], program: bytes, task: Channel):
        self._job = job
        self._task = task
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._member: Any = None
        self._stopping = False
        self._keeping = False  # the cluster restarts, and may need the files held here
        self._ended = False
        self._host_name = socket.gethostname()
        self._where = f"{job['name']} on host {self._host_name}"
        self._port = _reserve_port(job.get("ports", {}).get(NODE, [0]))
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours)
        self._relay = Relay(job, self._report)
        fds = (theirs.fileno(), self._port.fileno(), self._relay.program_end.fileno())
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "hearth.cluster.node.program", *map(str, fds)],
                stdin=subprocess.DEVNULL,
                pass_fds=fds,
                cwd=job["cwd"],
                **self._relay.popen_options(),
            )
        self._relay.start()
        self._channel.send({"bytes": len(program), "sys_path": job["sys_path"]}, data=program)
        coordinator = job["coordinator"]
        self._host = address_towards(*(coordinator or ("127.0.0.1", 1)))
        self._datasets = HeldDatasets(job, self._channel, self._report)
        self._listener = FeedListener(
            feed_terms(job["token"], job["executor_id"]),
            self._channel,
            self._report,
            self._host if coordinator else "",
            job.get("ports", {}).get(FEED, [0]),
            self._datasets.files,
        )
        self._board: tensorboard.Board | None = None

    def run(self) -> None:
        """Returns when the node has ended, after reporting its end."""
        for watch in (self._watch_child, self._watch_task, self._watch_executor):
            threading.Thread(target=watch, daemon=True).start()
        try:
            self._start()
            while self._handle(self._inbox.get()):
                pass
        except Exception as error:
            self._fail(f"{type(error).__name__}: {error}")
        finally:
            with ExitStack() as ends:  # each is called, even if another one fails
                ends.callback(self._listener.close)
                if self._board is not None:
                    ends.callback(self._board.stop)
                ends.callback(self._end_child)
                ends.callback(self._datasets.close)

    def keep(self) -> None:
        """Called after run(): keeps the rows of datasets if the cluster is to start again."""
        if self._keeping:
            self._task.close()
            self._datasets.keep()

    def _start(self) -> None:
        """Joins the cluster and starts the program."""
        job = self._job
        if job["tensorboard"]:
            self._board = tensorboard.start(job["log_dir"], job["executor_id"])
        info = {
            "executor_id": job["executor_id"],
            "host": self._host,
            "host_name": self._host_name,
            "job_name": job["job_name"],
            "task_index": job["task_index"],
            "port": self._port.getsockname()[1],
            "tb_pid": self._board.pid if self._board else 0,
            "tb_port": self._board.port if self._board else 0,
            "addr": self._listener.name,
            "feed_port": self._listener.port,
            "executor_pid": job["executor_pid"],
        }
        members = self._join(info)
        spec = roles.cluster_spec(members)
        links = {key: value for key, value in job["links"].items() if key not in os.environ}
        environment = {"CUDA_VISIBLE_DEVICES": visible_gpus(job, members, info["host"]), **links}
        config = roles.tf_config(spec, job["job_name"], job["task_index"])
        if config is not None:
            environment["TF_CONFIG"] = config
        add_hadoop_classpath()
        if "CLASSPATH" in os.environ:
            environment["CLASSPATH"] = os.environ["CLASSPATH"]
        message = {
            "op": "go",
            "environment": environment,
            "context": self._context(spec),
            "queues": job["queues"],
            "datasets": list(job["sources"]),
            "release_port": job["release_port"],
        }
        self._node = {**info, "name": job["name"]}
        self._channel.send(message)
        self._port.close()
        with suppress(OSError):
            self._task.send({"event": "started"})

    def _context(self, spec: dict[str, list[str]]) -> dict[str, Any]:
        """The fields of a NodeContext."""
        job = self._job
        return {
            "node_id": job["executor_id"],
            "role": job["job_name"],
            "index": job["task_index"],
            "cluster_spec": spec,
            "default_fs": job["defaultFS"],
            "working_dir": job["working_dir"],
            "restart_count": job["restart_count"],
            "checkpoint_dir": job["checkpoint_dir"],
            "collective_key": _collective_key(job["token"]) if job["coordinator"] else "",
        }

    def _join(self, info: dict[str, Any]) -> list[dict[str, Any]]:
        job = self._job
        if job["coordinator"] is None:
            return [info]
        from hearth.native._core import Member

        host, port = job["coordinator"]
        self._member = Member(
            host=host,
            port=port,
            token=job["token"],
            rank=job["executor_id"],
            world=job["world"],
            host_name=self._host_name,
        )
        self._member.send_event(json.dumps({"event": "joined"}))
        members = self._member.reserve(json.dumps(info))
        threading.Thread(target=self._watch_driver, daemon=True).start()
        return members

    def _handle(self, message: Message) -> bool:
        """Handles a message; False ends the supervisor."""
        kind, value = message.kind, message.value
        if kind is Kind.PROGRAM:
            return self._on_child(value)
        if kind is Kind.DRIVER:
            if value["op"] == "stop":
                self._stopping = True
                self._keeping = value.get("keep", False)
                return False
            if value["op"] == "dataset_plan":
                put = self._inbox.put
                value = self._datasets.plan(
                    value, self._node, lambda *why: put(Message(Kind.UNREADABLE, why))
                )
            if value.get("to", self._job["executor_id"]) == self._job["executor_id"]:
                with suppress(OSError):
                    self._channel.send(value)
            return True
        if kind is Kind.UNREADABLE:
            return self._fail(*value)
        if kind is Kind.FAILURE:  # possibly a failure of another node
            reason = roles.describe_failure(self._job["cluster_template"], value)
            self._listener.set_failure(reason)
            with suppress(OSError):
                self._channel.send({"op": "fail", "reason": reason})
            return True
        # The driver, the executor or the Spark task has ended. A background node outlives its task.
        return kind is Kind.TASK_ENDED and self._job["background"]

    def _on_child(self, ended: dict[str, Any]) -> bool:
        if "event" in ended:
            if self._member is not None and not self._ended:
                self._member.send_event(json.dumps(ended))
            elif ended["event"] == "files":
                with suppress(OSError):
                    self._channel.send({"op": "files", "ask": ended["ask"], "error": _NO_SHARES})
            return True
        if self._ended:
            return True
        self._ended = True
        self._relay.flush()
        if ended.get("result") == "ok":
            return self._on_success(ended["terminated"])
        return self._fail(ended["error"], ended.get("code", "internal"))

    def _on_success(self, terminated: bool) -> bool:
        self._datasets.files.over = True
        if terminated:
            self._listener.set_terminated()
        else:
            self._listener.set_failure(returned(self._where))
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(_EXIT_TIMEOUT_S)
        self._relay.flush()
        if self._member is not None:
            self._member.done(json.dumps({"event": "done"}))
        self._report_to_task({"event": "done"})
        return self._job["background"]

    def _fail(self, reason: str, code: str = "internal") -> bool:
        text = f"{self._where} failed: {reason}"
        self._listener.set_failure(text)
        if self._member is not None:  # roles.describe_failure() adds node and host
            self._member.send_failure(reason, code)
        self._report_to_task({"error": text})
        return self._job["background"]

    def _report_to_task(self, message: dict[str, Any]) -> None:
        """Reports the node's end to its task. A task that holds the node's resources gets no
        report, because the task must stay until it is stopped."""
        if not self._job["holds"]:
            with suppress(OSError):
                self._task.send(message)

    def _report(self, event: dict[str, Any]) -> None:
        if self._member is not None:
            self._member.send_event(json.dumps(event))

    def _watch_child(self) -> None:
        """Forwards the program's reports, then reports the program's end."""
        result: dict[str, Any] | None = None
        reason = ""
        try:
            while True:
                message, _ = self._channel.receive()
                if "result" in message:
                    result = message
                self._inbox.put(Message(Kind.PROGRAM, message))
        except (EOFError, OSError):
            pass
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            reason = f"its process sent an invalid message: {what}"
        if result is None:
            ended = {"error": reason} if reason else self._how_it_ended()
            self._inbox.put(Message(Kind.PROGRAM, {"result": "error", **ended}))

    def _how_it_ended(self) -> dict[str, str]:
        status = self._child.wait()
        if status == -signal.SIGKILL:  # the code "unavailable" allows the cluster to restart
            reason = "its process was killed by SIGKILL (as the kernel does when memory runs out)"
            return {"error": reason, "code": "unavailable"}
        if status < 0:
            return {"error": f"its process was killed by {signal.Signals(-status).name}"}
        reason = f"its process ended with status {status} and no reason; see the executor's stderr"
        return {"error": reason}

    def _watch_task(self) -> None:
        try:
            while True:
                self._task.receive()
        except (EOFError, OSError, ValueError):
            pass
        finally:
            self._inbox.put(Message(Kind.TASK_ENDED))

    def _watch_executor(self) -> None:
        """Reports the executor's end, as the executor's Python daemon may end without a report."""
        try:
            fd = os.pidfd_open(self._job["executor_pid"])
        except (OSError, AttributeError):
            return
        poller = select.poll()
        poller.register(fd, select.POLLIN)
        poller.poll()
        self._inbox.put(Message(Kind.EXECUTOR_ENDED))

    def _watch_driver(self) -> None:
        """Forwards messages of the driver and the rendezvous, then reports the end of the
        connection."""
        try:
            while True:
                text = self._member.next_message(_MESSAGE_WAIT_S)
                message = {} if text is None else json.loads(text)
                if "failure" in message:
                    self._inbox.put(Message(Kind.FAILURE, message["failure"]))
                elif message:
                    self._inbox.put(Message(Kind.DRIVER, message))
        except ConnectionError:
            pass
        finally:
            self._inbox.put(Message(Kind.DRIVER_ENDED))

    def _end_child(self) -> None:
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(_KILL_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        self._relay.close()
        if self._stopping:  # a restart of the cluster waits for this event
            with suppress(OSError):  # the driver may have ended
                if self._member is not None:
                    self._member.done(json.dumps({"event": "stopped"}))
            with suppress(OSError):
                self._task.send({"event": "done"})


def _collective_key(token: str) -> str:
    """A key derived from the cluster's token; programs that get the key do not learn the token."""
    return hmac.new(token.encode(), b"collective", "sha256").hexdigest()


def _reserve_port(ports: Sequence[int]) -> socket.socket:
    """A bound socket, which reserves a port for the node's TensorFlow server.

    TENSORFLOW_PORT takes precedence over `ports`.
    """
    if named := int(os.environ.get("TENSORFLOW_PORT", 0)):
        return _bound(named, shared=True)
    return first_free(ports, NODE, lambda port: _bound(port, shared=False))


def _bound(port: int, shared: bool) -> socket.socket:
    """A bound socket. The node's own server can bind the same port, another node's only if
    `shared`."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(shared))
        sock.bind(("", port))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return sock
    except OSError:
        sock.close()
        raise


def main() -> None:
    """Runs one supervisor; the first argument is the descriptor of its channel to the task."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # Spark's daemon sends SIGHUP to end its workers
    task = Channel(socket.socket(fileno=int(sys.argv[1])))
    message, _ = task.receive()
    program = task.receive_data(message["bytes"])
    tokens = message["job"]["tokens"]
    try:
        with token_scope(tokens and ForwardedTokens(**tokens)):
            supervisor = Supervisor(message["job"], program, task)
            supervisor.run()
            supervisor.keep()
    except Exception as error:
        name = f"{message['job']['name']} on host {socket.gethostname()}"
        task.send({"error": f"{name} could not start: {type(error).__name__}: {error}"})
    os._exit(0)  # exits without the watching threads, which still wait


if __name__ == "__main__":
    main()
