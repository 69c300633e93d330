"""The Spark task of one rank: starts the trainer, feeds it, reports its end."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hearth.caffe_jobs.live_events import EventSender, Listener
from hearth.caffe_jobs.recorded_events import RecordedEvents
from hearth.caffe_jobs.remote_files import RemoteFiles, RemotePlan
from hearth.caffe_jobs.ring_feed import FileFeed, TaskRank, feed, split_streams
from hearth.caffe_jobs.trainer_process import Event, RankError, TrainerProcess, compute_threads
from hearth.files.forwarded_tokens import ForwardedTokens, token_scope
from hearth.sources.rank_rows import RankRows
from hearth.spark.addresses import address_of, address_towards, bare
from hearth.spark.ports import COORDINATOR, coordinator_ports

if TYPE_CHECKING:
    from pyspark import BarrierTaskContext
    from pyspark.sql.types import StructType


def result_schema() -> StructType:
    """The schema of the batches that run_rank() yields. Not a DDL string, which Spark Connect's
    server would have to parse: that takes seconds if the server has just started.
    """
    from pyspark.sql.types import IntegerType, StringType, StructType

    return StructType().add("rank", IntegerType()).add("event", StringType())


@dataclass(frozen=True)
class RankSpec:
    """Parameters of one launch, equal for all ranks; serialized in Spark's task closure."""

    world: int
    generation: int
    token: str
    coordinator: tuple[str, int] | None  # address; None: runs in rank 0's task
    job: dict[str, Any]
    files: dict[str, RankRows]
    frames: tuple[str, ...]  # streams of the task's rows; if two, each has a struct column
    remote: RemotePlan | None = None  # access to the job's remote files
    hosts: tuple[frozenset[str], ...] = ()  # hosts that store each rank's files; see TaskRank
    ports: tuple[int, ...] = (0,)  # candidate ports for the coordinator in rank 0's task
    listener: Listener | None = None  # receives the events of a coordinator in rank 0's task
    tokens: ForwardedTokens | None = None  # for HDFS with Kerberos
    links: dict[str, str] = field(default_factory=dict)  # see link_environment()

    def __repr__(self) -> str:  # the token must not reach a log
        return f"RankSpec(world={self.world}, generation={self.generation})"


def run_rank(spec: RankSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The body of the barrier stage: yields events as rows of JSON. Rank 0 yields its last event:
    "done", or "error" if another rank was lost (that rank's task reports the reason). Each rank
    that read remote files also yields "files_read".

    Raises:
        RankError: this rank's trainer failed, or another rank failed first.
    """
    from pyspark import BarrierTaskContext

    from hearth.native._core import RingWriter

    context = BarrierTaskContext.get()
    task = TaskRank.of(context, spec.hosts)
    rank = task.rank
    with ExitStack() as stack:
        uses_hdfs = spec.files or (spec.remote and rank == 0)
        stack.enter_context(token_scope(spec.tokens if uses_hdfs else None))
        endpoint, kept = spec.coordinator, None
        if endpoint is None:
            endpoint, kept = _host_coordinator(spec, context, stack)
        rings = {
            name: stack.enter_context(closing(RingWriter())) for name in (*spec.files, *spec.frames)
        }
        files = FileFeed(spec.files, rings, task, spec.world)
        job = _job_of_rank(spec, (context, rank), endpoint, files.streams())
        fds = [fd for ring in rings.values() for fd in ring.fds()]
        remote = RemoteFiles(job, spec.remote) if spec.remote else None
        if remote is not None:
            stack.callback(remote.close)
        local_job = remote.local_job() if remote else job
        trainer = TrainerProcess(local_job, fds, files.start_epochs, spec.links)
        stack.callback(trainer.close)
        for ring in rings.values():
            ring.close_child_fds()
        if remote is not None and rank == 0:
            remote.watch()
        files.start()
        if spec.frames:
            frame_rings = {name: rings[name] for name in spec.frames}
            feed(frame_rings, split_streams(batches, spec.frames))
        last = _last_event(trainer, spec, rank)
        if remote is not None and rank == 0:
            last = remote.finish(last)
        if kept is not None:
            last = {**last, "events": kept.finish_done()}
    reported = [json.dumps(event) for event in ([last] if rank == 0 else []) + files.read()]
    yield pa.RecordBatch.from_pydict(
        {
            "rank": pa.array([rank] * len(reported), pa.int32()),
            "event": pa.array(reported, pa.string()),
        }
    )


def _last_event(trainer: TrainerProcess, spec: RankSpec, rank: int) -> Event:
    """Waits for the trainer's end. If another rank was lost, returns an event instead of failing.

    The lost rank's task knows the reason, but Spark reports only the first failed task to the
    driver, so this task must not fail first. With Spark Connect the driver has no coordinator that
    reports failures, so each rank that knows of one fails.
    """
    try:
        return trainer.wait()
    except RankError as error:
        failure = error.failure
        if spec.coordinator is None or not failure.closed or failure.rank in (-1, rank):
            raise
        return {"event": "error", **asdict(failure)}


def _job_of_rank(
    spec: RankSpec,
    task: tuple[BarrierTaskContext, int],
    endpoint: tuple[str, int],
    streams: dict[str, Any],
) -> dict[str, Any]:
    context, rank = task
    return {
        **spec.job,
        "token": spec.token,
        "generation": spec.generation,
        "coordinator": {"host": endpoint[0], "port": endpoint[1]},
        "rank": rank,
        "world": spec.world,
        "host": socket.gethostname(),
        "listen_host": address_towards(*endpoint),
        "threads": compute_threads(context.cpus()),
        "streams": streams,
    }


def _host_coordinator(
    spec: RankSpec, context: BarrierTaskContext, stack: ExitStack
) -> tuple[tuple[str, int], RecordedEvents | None]:
    """Rank 0 hosts the coordinator and sends its address to all ranks in a barrier call.

    Rank 0's task also records the events, in case the driver receives none before the end.
    """
    from hearth.native._core import Coordinator

    port, kept = 0, None
    hosts = [bare(info.address.rpartition(":")[0]) for info in context.getTaskInfos()]
    one_host = len(set(hosts)) == 1
    if context.partitionId() == 0:
        address = "127.0.0.1" if one_host else address_of(hosts[0])
        coordinator = Coordinator(
            world=spec.world,
            token=spec.token,
            generation=spec.generation,
            bind_host=address,
            **coordinator_ports(spec.ports, COORDINATOR),
        )
        stack.enter_context(closing(coordinator))
        sender = EventSender(spec.listener) if spec.listener is not None else None
        port, kept = coordinator.port(), RecordedEvents(coordinator, sender)
        stack.callback(kept.finish)  # in case the rank fails
    answer = next(filter(None, context.allGather(f"{address}:{port}" if port else "")))
    host, _, port_text = answer.rpartition(":")
    return (host, int(port_text)), kept
