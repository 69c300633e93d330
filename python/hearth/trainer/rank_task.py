"""What one Spark task does for its rank: start the trainer, feed it, report how it went."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from hearth.files.forwarded_tokens import ForwardedTokens, token_scope
from hearth.sources.rank_rows import RankRows
from hearth.spark.addresses import address_of, bare
from hearth.spark.ports import COORDINATOR, coordinator_ports
from hearth.trainer.far_files import FarFiles, FarPlan
from hearth.trainer.kept_events import KeptEvents
from hearth.trainer.live_events import EventSender, Listener
from hearth.trainer.ring_feed import FileFeed, Place, feed, split_streams
from hearth.trainer.trainer_process import Event, RankError, TrainerProcess, compute_threads

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import BarrierTaskContext
    from pyspark.sql.types import StructType


def result_schema() -> StructType:
    """Of what run_rank() yields. Text would have to be sent to Spark Connect's server to be read.

    That takes seconds where the server has just started.
    """
    from pyspark.sql.types import IntegerType, StringType, StructType

    return StructType().add("rank", IntegerType()).add("event", StringType())


@dataclass(frozen=True)
class RankSpec:
    """One launch, the same for all its ranks; travels in Spark's task closure."""

    world: int
    generation: int
    token: str
    coordinator: tuple[str, int] | None  # None: rank 0's task hosts it (Spark Connect)
    job: dict[str, Any]
    files: dict[str, RankRows]
    frames: tuple[str, ...]  # streams in the task's own rows; if two, one struct column each
    far: FarPlan | None = None  # where files of the job lie elsewhere
    hosts: tuple[frozenset[str], ...] = ()  # of each rank, near which its files are; see Place
    ports: tuple[int, ...] = (0,)  # that the coordinator of rank 0's task tries
    listener: Listener | None = None  # of events while rank 0's task hosts the coordinator
    tokens: ForwardedTokens | None = None  # for HDFS with Kerberos
    links: dict[str, str] = field(default_factory=dict)  # see link_environment()

    def __repr__(self) -> str:  # the token must not reach a log
        return f"RankSpec(world={self.world}, generation={self.generation})"


def run_rank(spec: RankSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The body of the barrier stage: yields events as rows of JSON: rank 0's last one, "done", or
    "error" where another rank went away, whose own task says why; and of each rank "files_read",
    where it read files of other file systems.

    Raises:
        RankError: this rank's trainer, or the first one of the cluster, failed.
    """
    import pyarrow as pa
    from pyspark import BarrierTaskContext

    from hearth.native._core import RingWriter

    context = BarrierTaskContext.get()
    place = Place.of(context, spec.hosts)
    rank = place.rank
    with ExitStack() as stack:
        uses_hdfs = spec.files or (spec.far and rank == 0)
        stack.enter_context(token_scope(spec.tokens if uses_hdfs else None))
        endpoint, kept = spec.coordinator, None
        if endpoint is None:
            endpoint, kept = _host_coordinator(spec, context, stack)
        rings = {
            name: stack.enter_context(closing(RingWriter())) for name in (*spec.files, *spec.frames)
        }
        files = FileFeed(spec.files, rings, place, spec.world)
        job = _job_of_rank(spec, (context, rank), endpoint, files.streams())
        fds = [fd for ring in rings.values() for fd in ring.fds()]
        far = stack.enter_context(FarFiles(job, spec.far)) if spec.far else None
        local_job = far.local_job() if far else job
        trainer = stack.enter_context(
            TrainerProcess(local_job, fds, files.start_epochs, spec.links)
        )
        for ring in rings.values():
            ring.close_child_fds()
        if far is not None and rank == 0:
            far.watch()
        files.start()
        if spec.frames:
            frame_rings = {name: rings[name] for name in spec.frames}
            feed(frame_rings, split_streams(batches, spec.frames))
        last = _last_event(trainer, spec, rank)
        if far is not None and rank == 0:
            last = far.finish(last)
        if kept is not None:
            last = {**last, "events": kept.finish_done()}
    told = [json.dumps(event) for event in ([last] if rank == 0 else []) + files.read()]
    yield pa.RecordBatch.from_pydict(
        {"rank": pa.array([rank] * len(told), pa.int32()), "event": pa.array(told, pa.string())}
    )


def _last_event(trainer: TrainerProcess, spec: RankSpec, rank: int) -> Event:
    """Leaves it to the task of a rank that closed its connection to end the job.

    It knows more, but Spark tells the driver of the first task that fails only. Where the driver
    cannot end the job, as it hears of no failure itself, whoever knows of one does.
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
        "listen_host": _address_towards(*endpoint),
        "threads": compute_threads(context.cpus()),
        "streams": streams,
    }


def _address_towards(host: str, port: int) -> str:
    """This host's own address on the interface by which it reaches `host`."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0][0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((host, port))  # sends nothing
        return probe.getsockname()[0]


def _host_coordinator(
    spec: RankSpec, context: BarrierTaskContext, stack: ExitStack
) -> tuple[tuple[str, int], KeptEvents | None]:
    """Rank 0 hosts the coordinator and all ranks learn where, by the only barrier call there is.

    Rank 0's task also keeps the events, for a driver that may hear of nothing before the end.
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
        port, kept = coordinator.port(), KeptEvents(coordinator, sender)
        stack.callback(kept.finish)  # where the rank fails
    answer = next(filter(None, context.allGather(f"{address}:{port}" if port else "")))
    host, _, port_text = answer.rpartition(":")
    return (host, int(port_text)), kept
