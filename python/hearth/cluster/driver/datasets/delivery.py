"""The driver's side of datasets: assigns partitions to ranks, and sends them the rows."""

from __future__ import annotations

import base64
import hashlib
import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.cluster import roles
from hearth.cluster.channel import Message
from hearth.cluster.driver.datasets.stored_plan import StoredPlan
from hearth.cluster.driver.pace import PaceLine
from hearth.cluster.errors import job_error
from hearth.cluster.task.dataset_task import RESULT_SCHEMA, DatasetSpec, deliver_task, grouped
from hearth.errors import invalid
from hearth.rows.carried_types import not_carried, uncarried, uncarried_arrow
from hearth.rows.rank_rows import cores, divided_rows, is_deterministic, launch_conf
from hearth.sources.tables.frames import frame_identity
from hearth.spark.arrow_map import map_in_arrow
from hearth.spark.job import SparkJob
from hearth.spark.session_conf import session_conf
from hearth.spark.stage_columns import columns_at

if TYPE_CHECKING:
    from hearth.cluster.driver.start import ClusterStart

logger = logging.getLogger(__name__)

# Number of partitions of a frame; it has many divisors, so most numbers of ranks get equal shares.
_FRAME_PARTITIONS = 48
# Tasks per core that deliver a shuffled frame: several, because some tasks take longer than others,
# and cores may be added.
_TASKS_PER_CORE = 4
# Approximate number of messages by which ranks are informed of complete partitions.
_PARTS = 48
# Hash of an empty partition.
_NO_ROWS = "0" * 16


@dataclass
class Plan:
    """The partitions of one dataset, which do not depend on the number of ranks."""

    name: str
    partitions: int
    frame: Any = None  # a DataFrame with `partitions` partitions
    conf: dict[str, str] = field(default_factory=dict)  # settings under which Spark plans the frame
    source: Any = None  # files with their splits, read by the ranks
    identity: str = ""
    spool: bool = True  # False: ranks read the source again in each epoch
    deterministic: bool = True  # False: recomputed rows may differ
    shuffled: bool = False  # divided_rows() has added a shuffle and a sort
    columns: tuple[str, ...] = ()
    # Types by name of the columns that are not delivered, because nodes do not support them.
    left_out: dict[str, str] = field(default_factory=dict)
    # (number of rows, their hash) by partition, for partitions that were delivered completely in
    # some start of the nodes.
    known: dict[int, tuple[int, str]] = field(default_factory=dict)

    def keeps(self) -> bool:
        """Whether nodes may combine partition files of an earlier start with recomputed rows."""
        every = len(self.known) == self.partitions
        return self.deterministic or (every and all(digest for _, digest in self.known.values()))

    def check(self, partition: int, rows: int, digest: str) -> str:
        """Compares a complete partition with the same partition of earlier starts. Returns how the
        two differ; "" if they are equal, or no earlier start completed it."""
        had, before = self.known.setdefault(partition, (rows, digest))
        if had == rows and (before == digest or not before or not digest):
            self.known[partition] = rows, before or digest
            return ""
        return (
            f"partition {partition} of dataset {self.name!r} had {had} rows with hash {before} "
            f"before the cluster started again and has {rows} with {digest} now; rows of a "
            "dataset must be the same each time they are computed: cache or checkpoint the "
            "DataFrame"
        )

    def owners(self, hosts: Sequence[frozenset[str]]) -> list[int]:
        """The rank that owns each partition; `hosts`: the names of each rank's host."""
        if self.source is None:
            return [partition % len(hosts) for partition in range(self.partitions)]
        from hearth.sources.owners import owners

        return owners(self.source.splits(), hosts, len(hosts))

    def described(self) -> dict[str, Any]:
        """Known facts about the dataset's rows, by names such as "dataset.train.rows"."""
        found: dict[str, Any] = {"version": self.identity}
        if self.source is not None:
            found["uri"] = getattr(self.source, "uri", "")
        if len(self.known) == self.partitions:
            found["rows"] = sum(rows for rows, _ in self.known.values())
            digests = [digest for _, (_, digest) in sorted(self.known.items())]
            if all(digests):
                found["hash"] = hashlib.sha256(" ".join(digests).encode()).hexdigest()[:16]
        return {f"dataset.{self.name}.{key}": value for key, value in found.items()}

    def packed_source(self) -> str:
        """The source, serialized as text for a node's readers; empty for a frame."""
        if self.source is None:
            return ""
        from pyspark import cloudpickle

        return base64.b64encode(cloudpickle.dumps(self.source)).decode()


class Datasets:
    """The plans and deliveries of all datasets of one cluster. begin() is called at each start of
    the nodes."""

    def __init__(self, spark: Any, rows: Mapping[str, Any], ranks: int, folder: str = ""):
        """Plans the datasets.

        Args:
            spark: a spark_access().
            rows: a DataFrame, or a source of hearth.data, by name.
            ranks: maximum number of nodes that take rows.
            folder: the folder for checkpoints, where the plan is stored; empty: not stored.

        Raises:
            TypeError: an unsupported type of rows.
            ValueError, OSError, HearthError: a streaming DataFrame, a column of an unsupported
                type, files that cannot be listed, or a table's version that is gone.
        """
        self._spark = spark
        self._deliveries: list[Delivery] = []  # to nodes of the current start
        self._kept = StoredPlan(folder if rows else "", _attempt_of(spark.session))
        rows = {name: _resolved(value, spark.session) for name, value in rows.items()}
        frames = {name: value for name, value in rows.items() if _is_frame(name, value)}
        for name, frame in frames.items():
            _check_frame(name, frame)
            frames[name] = rows[name] = self._kept.pinned_frame(name, frame)
        self.has_frames = bool(frames)
        self.plans = {name: self._plan(name, rows[name], frames, ranks) for name in rows}

    def _plan(self, name: str, rows: Any, frames: Mapping[str, Any], ranks: int) -> Plan:
        if name not in frames:
            source = self._kept.pinned(name, rows, self._spark.session)
            source, left_out = _carried_source(name, source)
            spool = getattr(source, "spool", True)
            if not spool and any(split.rows is None for split in source.splits()):
                raise invalid(
                    f"dataset {name!r} has spool=False, which needs files that store their number "
                    f"of rows; those of {source.uri} do not: remove spool=False"
                )
            identity, splits = source.identity(), len(source.splits())
            about = {"identity": identity, "spool": spool, "left_out": left_out}
            about["columns"] = tuple(source.schema().names)
            return Plan(name, splits, source=source, **about)
        partitions = _FRAME_PARTITIONS * -(-ranks // _FRAME_PARTITIONS)
        partitions = self._kept.partitions(name) or partitions
        session = self._spark.session
        left_out = uncarried(rows.schema)
        _check_some_left(name, left_out, len(rows.columns))
        if left_out:  # selected by position, as Spark ignores case in names
            named = enumerate(rows.columns)
            rows = columns_at(rows, [at for at, column in named if column not in left_out])
        # A resumed run may have another number of cores, but its partitions must have the same
        # rows.
        conf = launch_conf(session, partitions, frames.values(), pieces=partitions)
        with session_conf(session, conf):
            frame, shuffled = divided_rows(rows, partitions)
            deterministic = is_deterministic(rows)
        facts: dict[str, Any] = {
            "deterministic": deterministic,
            "shuffled": shuffled,
            "columns": tuple(rows.columns),
            "left_out": left_out,
        }
        return Plan(name, partitions, frame, conf, identity=frame_identity(rows), **facts)

    def described(self) -> dict[str, Any]:
        """The known facts that identify the datasets' rows: uri, version, rows, hash."""
        return {k: v for plan in self.plans.values() for k, v in plan.described().items()}

    def meta(self) -> dict[str, Message]:
        """Parameters for the start of nodes: each dataset's source as text, "" for a frame."""
        return {
            name: {"source": plan.packed_source(), "spool": plan.spool}
            for name, plan in self.plans.items()
        }

    def line(self) -> str:
        """Progress of this start's deliveries; "" if all rows are delivered."""
        parts = [delivery.line() for delivery in self._deliveries]
        return "delivering rows: " + ", ".join(filter(None, parts)) if any(parts) else ""

    def begin(self, running: ClusterStart, nodes: Sequence[Mapping[str, Any]]) -> None:
        """Tells the nodes of a start which rank owns each partition, and delivers rows in the
        background. If a delivery fails, the cluster fails with the reason.
        """
        fed = roles.fed_nodes(nodes)
        hosts = [frozenset((node["host"], node["host_name"])) for node in fed]
        self._deliveries = []
        for plan in self.plans.values():
            planned = partial(plan.owners, hosts)
            owners = self._kept.owners(plan.name, len(fed), plan.partitions, planned)
            delivery = Delivery(plan, running)
            self._deliveries.append(delivery)
            running.watch.add_dataset(plan.name, delivery.note)
            named = {"op": "dataset_plan", "dataset": plan.name, "identity": plan.identity}
            ids = [node["executor_id"] for node in fed]
            message = {**named, "owners": owners, "nodes": ids, "keeps": plan.keeps()}
            message |= {"columns": plan.columns, "left_out": plan.left_out}
            running.broadcast(message)
            if not plan.partitions:
                delivery.report_totals()
            if plan.frame is None:
                continue
            token = str(fed[0]["authkey"])
            spec = DatasetSpec(plan.name, token, _bare(fed), tuple(owners), plan.shuffled)
            action = partial(_deliver, self._spark.session, plan, spec)
            running.deliveries.append(SparkJob(self._spark, action, delivery.end))
        if self.line():
            show = partial(self._show, running)
            threading.Thread(target=show, name="hearth-deliveries", daemon=True).start()

    def _show(self, running: ClusterStart) -> None:
        """Shows the progress of deliveries until all deliveries or the cluster have ended."""
        watch = running.watch
        with PaceLine(self.line):
            watch.wait(lambda: watch.closing or not self.line(), None)


class Delivery:
    """Delivery of one dataset's rows to one start of the nodes. Thread-safe."""

    def __init__(self, plan: Plan, running: ClusterStart):
        self._plan = plan
        self._running = running
        self._lock = threading.Lock()
        self._known: dict[int, tuple[int, str]] = {}
        self._unreported: list[list[Any]] = []  # [partition, rows, hash]
        self._totals_sent = False

    def line(self) -> str:
        """Number of delivered partitions; "" once all are, or if ranks do not spool rows."""
        plan = self._plan
        with self._lock:
            known, rows = len(self._known), sum(rows for rows, _ in self._known.values())
        if self._totals_sent or not plan.spool:
            return ""
        return f"{plan.name} {known} of {plan.partitions} partitions ({rows:,} rows)"

    def note(self, event: Message) -> None:
        """Handles the event by which a node reports that it has received all rows of a
        partition."""
        partition, rows, digest = event["partition"], event["rows"], event["hash"]
        with self._lock:
            self._known[partition] = rows, digest
            over = len(self._known) == self._plan.partitions
            changed = self._plan.check(partition, rows, digest)
            self._unreported.append([partition, rows, digest])
            some = (
                self._unreported if len(self._unreported) * _PARTS >= self._plan.partitions else []
            )
            if some:
                self._unreported = []
        if changed:
            self._running.fail(changed)
        elif over:
            self.report_totals()
        elif some:  # ranks include these partitions in states that they save from now on
            self._send({"op": "dataset_counted", "counted": some})

    def end(self, job: SparkJob) -> None:
        """Handles the end of the job that delivers a frame."""
        if job.error is None:
            with self._lock:
                for partition, rows, digest in job.result:
                    self._known.setdefault(partition, (rows, digest))
            self.report_totals()
            return
        watch = self._running.watch
        if watch.closing or watch.await_cause(job.error) is not None:
            return
        reason = f"the rows of dataset {self._plan.name!r}: {job_error(job.error)}"
        self._running.fail(reason)

    def report_totals(self) -> None:
        """Sends the ranks the number of rows of each partition, once all partitions are
        delivered."""
        with self._lock:
            if self._totals_sent:
                return
            self._totals_sent = True
            # Spark runs no task for a partition that it knows to be empty, so no node reports that
            # partition.
            each = [self._known.get(p, (0, _NO_ROWS)) for p in range(self._plan.partitions)]
            for partition, known in enumerate(each):
                self._plan.known.setdefault(partition, known)
        rows = [count for count, _ in each]
        hashes = [digest for _, digest in each]
        logger.info("dataset %s: %d rows in %d partitions", self._plan.name, sum(rows), len(each))
        if not any(rows):
            logger.warning(
                "dataset %r has no rows, so nodes make no steps with it: check the filters of its "
                "DataFrame, or its files", self._plan.name
            )  # fmt: skip
        self._send({"op": "dataset_totals", "rows": rows, "hashes": hashes})

    def _send(self, message: Message) -> None:
        with suppress(RuntimeError):  # the cluster may have ended
            self._running.broadcast({**message, "dataset": self._plan.name})


def _deliver(session: Any, plan: Plan, spec: DatasetSpec) -> list[tuple[int, int, str]]:
    """The Spark action that delivers a frame."""
    tasks = min(plan.partitions, _TASKS_PER_CORE * cores(session, len(spec.nodes)))
    with session_conf(session, plan.conf):
        frame = grouped(plan.frame, tasks) if spec.grouped else plan.frame
        stage = map_in_arrow(frame, partial(deliver_task, spec), RESULT_SCHEMA)
        return [(row[0], row[1], row[2]) for row in stage.collect()]


def _attempt_of(session: Any) -> tuple[str, str]:
    """The application's id, and the number of the driver's attempt; "" if unknown."""
    return session.conf.get("spark.app.id", ""), session.conf.get("spark.app.attempt.id", "")


def _bare(nodes: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    return tuple({k: v for k, v in node.items() if k != "authkey"} for node in nodes)


def _resolved(rows: Any, session: Any) -> Any:
    """Converts files that Spark must read to a DataFrame, and a catalog table to its source; other
    rows are returned unchanged."""
    from hearth.sources.spark_files import SparkFiles
    from hearth.sources.tables.catalog import CatalogTable

    if isinstance(rows, CatalogTable):
        return rows.resolved(session)
    return rows.frame(session) if isinstance(rows, SparkFiles) else rows


def _is_frame(name: str, rows: Any) -> bool:
    """Raises TypeError if the rows are neither a frame nor a source."""
    if hasattr(type(rows), "mapInArrow"):
        return True
    if hasattr(rows, "splits") and hasattr(rows, "pin"):
        return False
    kind = type(rows)
    raise TypeError(
        f"dataset {name!r} is a {kind.__module__}.{kind.__qualname__}, which is not supported: "
        "pass a Spark DataFrame (spark.createDataFrame(...)), or a source of hearth.data, such "
        "as hearth.data.parquet(uri)"
    )


def _check_frame(name: str, frame: Any) -> None:
    if frame.isStreaming:
        raise invalid(
            f"dataset {name!r} is a streaming DataFrame, which never ends: feed its batches "
            "by cluster.train() in foreachBatch"
        )


def _carried_source(name: str, source: Any) -> tuple[Any, dict[str, str]]:
    """(the source without the columns that nodes do not support, the types of these columns by
    name)."""
    columns = source.schema().names
    left_out = uncarried_arrow(source.schema())
    _check_some_left(name, left_out, len(columns))
    if not left_out:
        return source, {}
    if not hasattr(source, "select"):  # a class defined by the user
        column, kind = next(iter(left_out.items()))
        raise invalid(
            f"column {column!r} of dataset {name!r} has the type {kind}, which datasets do not "
            f"support: leave it out of the schema() and the batches of {type(source).__qualname__},"
            " or convert it there"
        )
    named = source.columns or [(column, column) for column in columns]
    return source.select([pair for pair in named if pair[1] not in left_out]), left_out


def _check_some_left(name: str, left_out: Mapping[str, str], columns: int) -> None:
    if left_out and len(left_out) == columns:
        raise not_carried(name, *next(iter(left_out.items())))
